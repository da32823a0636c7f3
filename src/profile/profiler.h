// The client's side of profiling: runs functions of every memory option that measure the layers of
// a job's model, and makes a profile of what they answer.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/job.h"
#include "core/manifest.h"
#include "core/profile.h"
#include "core/run_record.h"
#include "platform/function_platform.h"
#include "profile/profile_progress.h"
#include "store/object_store.h"

namespace funcpipe {

struct ProfileRequest {
  const JobSpec& job;  // dataset URLs are absolute
  const ModelManifest& manifest;
  const std::vector<Buffer>& layer_files;  // one for each layer
  std::string run;                         // prefix of all objects in the store, which stay there
  std::string store_url;                   // of the same store as the functions open it
  std::vector<int> memory_mb;              // options to measure, each once
  std::function<std::string(int memory_mb)> function_name;
  int rounds = 7;
  int warm_up_passes = 3;
  double round_seconds = 0.5;     // at least; real time
  std::uint64_t burst_bytes = 0;  // see LinkProbeOptions
  double transfer_seconds = 5;    // see LinkProbeOptions; real time
  double time_dilation = 1;
  int parallel = 1;  // options at a time

  // Of all that the figures depend on but the memory option.
  std::string fingerprint() const;
};

// Called on one thread at a time.
struct ProfileEvents {
  std::function<void(const std::string&)> note;            // a line for people
  std::function<void(const ProfileProgress&)> progressed;  // worth saving
};

// run() is called once; `accounts` may be read after it has returned or thrown. Other members are
// its own.
class Profiler {
 public:
  // Collaborators outlive the profiler.
  Profiler(const ProfileRequest& request, ObjectStore& store, FunctionPlatform& platform,
           Clock& clock, ProfileEvents events);
  ~Profiler();

  // Goes on from `progress`, which must have the request's fingerprint or be empty. Layers that a
  // function of some size cannot run are marked in the profile. Throws Error when functions fail
  // for another reason than memory or time, when some layer runs at no option, and kCancelled when
  // `stop` is requested.
  ModelProfile run(ProfileProgress progress, const std::stop_token& stop);

  // What the functions of each option have used, in the order of the options.
  std::vector<WorkerAccount> accounts() const;

 private:
  struct Group {
    int first = 0, last = 0;
  };
  enum class Trial { kMeasured, kOutOfMemory, kOutOfTime };
  struct Call {
    InvocationOutcome outcome;
    Duration duration{};  // from the call to the answer; real time
  };

  void upload_model();
  void measure_option(int memory_mb, const std::stop_token& stop);
  void measure_start(int memory_mb, const std::stop_token& stop);
  void measure_links(int memory_mb, const std::stop_token& stop);
  void measure_layers(int memory_mb, const std::stop_token& stop);
  Group next_group(const OptionProgress& option, int memory_mb, int most_layers) const;
  Trial measure_group(int memory_mb, Group group, const std::stop_token& stop);
  void accept_start(int memory_mb, const Call& first, const Call& second);
  void accept_group(int memory_mb, Group group, const ProfileReport& report);
  void mark_too_small(int memory_mb);
  void mark_unfit(int memory_mb, int layer, Trial trial);

  ProfileTask task(ProfileTask::Kind kind) const;
  Call call(int memory_mb, const ProfileTask& task, const std::stop_token& stop);
  void book(int memory_mb, const InvocationOutcome& outcome);
  void note(int memory_mb, const std::string& text);
  OptionProgress snapshot(int memory_mb) const;

  const ProfileRequest& request_;
  ObjectStore& store_;
  FunctionPlatform& platform_;
  Clock& clock_;
  const ProfileEvents events_;
  mutable std::mutex mutex_;  // guards what follows, and calls of events
  ProfileProgress progress_;
  std::map<int, WorkerAccount> accounts_;
};

}  // namespace funcpipe
