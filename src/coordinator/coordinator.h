// The client side of a run: puts the model into the store, starts the workers, follows them, starts
// those again that stopped before their function's time limit, and gathers what they leave.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/job.h"
#include "core/manifest.h"
#include "core/run_record.h"
#include "core/trace.h"
#include "platform/function_platform.h"
#include "store/object_store.h"

namespace funcpipe {

struct RunRequest {
  const JobSpec& job;  // dataset URLs are absolute
  const Plan& plan;
  const ModelManifest& manifest;
  const std::vector<Buffer>& layer_files;  // one for each layer
  std::string run;                         // prefix within the store
  std::string store_url;                   // of the same store as the functions open it
  std::int64_t train_records = 0;
  double time_dilation = 1;
};

// What a finished run leaves.
struct RunResult {
  std::vector<Buffer> stage_weights;  // safetensors, by stage
  std::vector<WorkerTrace> traces;
};

// Called on the coordinator's thread.
struct RunEvents {
  std::function<void(const StepSummary&)> step;
  std::function<void(const EvaluationSummary&)> evaluation;
  std::function<void(const std::string&)>
      note;  // "worker 0.1 goes on in a new function from step 120"
};

// The function's name for a memory option; deployed under this name everywhere.
std::string function_name(int memory_mb);

// Used by one thread. `accounts` may be read after run() has returned or thrown.
class Coordinator {
 public:
  Coordinator(ObjectStore& store, FunctionPlatform& platform, Clock& clock);
  ~Coordinator();

  // Throws Error when a worker fails for good, naming it, what happened, and what to do; kCancelled
  // when `stop` is requested. In both cases the other workers are told to end.
  RunResult run(const RunRequest& request, const RunEvents& events, std::stop_token stop);

  // What each worker has used up to now; those still running are not in yet.
  std::vector<WorkerAccount> accounts() const;

 private:
  struct Member;  // a worker under way

  void upload_model(const RunRequest& request);
  void launch(Member& member, const RunRequest& request);
  void follow(const RunRequest& request, const RunEvents& events, std::stop_token stop);
  bool settle(Member& member, const RunRequest& request, const RunEvents& events);
  void book(Member& member, const InvocationOutcome& outcome);
  [[noreturn]] void give_up(const RunRequest& request);
  RunResult gather(const RunRequest& request);
  void stop_workers(const RunRequest& request);

  ObjectStore& store_;
  FunctionPlatform& platform_;
  Clock& clock_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace funcpipe
