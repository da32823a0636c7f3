#include "coordinator/failure.h"

namespace funcpipe {
namespace {

using Kind = InvocationOutcome::Kind;

std::string with_log(std::string text, const InvocationOutcome& outcome) {
  if (outcome.log_tail.empty()) return text;
  return fmt::format("{}\n--- last lines of its log ---\n{}", text, outcome.log_tail);
}

bool is_complaint_about_others(const InvocationOutcome& outcome) {
  const auto code = error_code_from_string(outcome.error_type);
  return outcome.kind == Kind::kFunctionError &&
         (code == ErrorCode::kDeadlineExceeded || code == ErrorCode::kCancelled);
}

}  // namespace

int failure_rank(const InvocationOutcome& outcome) {
  if (is_complaint_about_others(outcome)) return 2;
  return outcome.kind == Kind::kFunctionError ? 1 : 0;
}

Error failure_of(const WorkerId& worker, const InvocationOutcome& outcome) {
  const auto name = fmt::format("worker {}", worker.text());
  switch (outcome.kind) {
    case Kind::kOutOfMemory:
      return {ErrorCode::kResourceExhausted,
              fmt::format("{} ran out of memory: its function has {} MB and had used {} MB; give "
                          "stage {} more in plan.memory_mb, "
                          "cut it into more stages, or lower micro_batch_size",
                          name, outcome.usage.memory_mb, outcome.usage.max_memory_used_mb,
                          worker.stage)};
    case Kind::kTimedOut:
      return {ErrorCode::kDeadlineExceeded,
              fmt::format("{} was ended by the platform's time limit before it could save its "
                          "state ({}); raise platform.time_limit, "
                          "or make steps shorter",
                          name, outcome.error_message)};
    case Kind::kCrashed:
      return {ErrorCode::kInternal,
              with_log(fmt::format("{} crashed: {}", name, outcome.error_message), outcome)};
    case Kind::kFunctionError:
      return {error_code_from_string(outcome.error_type), outcome.error_message};
    case Kind::kThrottled:
      return {ErrorCode::kResourceExhausted,
              fmt::format("{} could not be started: {}", name, outcome.error_message)};
    case Kind::kRejected:
      return {ErrorCode::kFailedPrecondition,
              fmt::format("the platform refused to start {}: {}", name, outcome.error_message)};
    case Kind::kUnreachable:
      return {ErrorCode::kUnavailable,
              fmt::format("the platform does not answer for {}: {}", name, outcome.error_message)};
    case Kind::kSucceeded:
      break;
  }
  return {ErrorCode::kInternal, fmt::format("{} did not fail", name)};
}

}  // namespace funcpipe
