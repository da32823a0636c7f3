#include "platform/function_platform.h"

namespace funcpipe {

std::string_view to_string(InvocationOutcome::Kind kind) {
  switch (kind) {
    case InvocationOutcome::Kind::kSucceeded:
      return "succeeded";
    case InvocationOutcome::Kind::kFunctionError:
      return "function error";
    case InvocationOutcome::Kind::kCrashed:
      return "crashed";
    case InvocationOutcome::Kind::kTimedOut:
      return "timed out";
    case InvocationOutcome::Kind::kOutOfMemory:
      return "out of memory";
    case InvocationOutcome::Kind::kThrottled:
      return "throttled";
    case InvocationOutcome::Kind::kRejected:
      return "rejected";
    case InvocationOutcome::Kind::kUnreachable:
      return "unreachable";
  }
  return "unknown";
}

}  // namespace funcpipe
