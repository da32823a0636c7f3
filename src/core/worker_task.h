// What the coordinator tells a worker, what the worker answers, and the records it leaves on the
// way: the payloads of invocations and the small JSON objects in the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/job.h"
#include "core/plan.h"
#include "core/usage.h"

namespace funcpipe {

// The payload of an invocation.
struct WorkerTask {
  std::string run;    // prefix of the run in the store
  std::string store;  // URL of the store
  JobSpec job;        // dataset URLs are absolute
  Plan plan;
  WorkerId worker;
  int attempt = 0;        // counts the invocations of this worker
  std::int64_t step = 0;  // step to begin with; > 0: from the checkpoint of that step

  nlohmann::json to_json() const;
  // Throws Error(kInvalidArgument) for a payload that is not a task.
  static WorkerTask from_text(std::string_view text);
};

// The answer of an invocation.
struct WorkerReport {
  enum class Status { kDone, kContinue };
  Status status = Status::kDone;
  std::int64_t next_step = 0;  // kContinue: invoke again from here
  StoreUsage usage;
  double compute_seconds = 0;  // time the compute lane was busy
  std::int64_t trace_events_dropped = 0;

  nlohmann::json to_json() const;
  static WorkerReport from_text(std::string_view text);
};

// One step as one last-stage worker saw it: its share of the loss.
struct StepRecord {
  std::int64_t step = 0;
  double loss_sum = 0;  // over the worker's samples
  std::int64_t correct = 0;
  std::int64_t samples = 0;  // of the worker
  double learning_rate = 0;
  std::int64_t end_unix_ns = 0;
  std::uint64_t puts = 0;  // storage requests of the worker's invocation so far
  std::uint64_t gets = 0;
};
std::string to_text(const std::vector<StepRecord>& records);
std::vector<StepRecord> step_records_from_text(std::string_view text);

// One evaluation as one last-stage worker saw it.
struct EvaluationRecord {
  std::int64_t step = 0;  // steps trained so far
  double loss_sum = 0;
  std::int64_t correct = 0;
  std::int64_t samples = 0;
};
std::string to_text(const EvaluationRecord& record);
EvaluationRecord evaluation_record_from_text(std::string_view text);

}  // namespace funcpipe
