// What runs functions: the local host, AWS Lambda, Alibaba Function Compute, any HTTP platform.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "core/platform_spec.h"

namespace funcpipe {

// What the platform says an invocation used, as billed.
struct Usage {
  Duration duration{};  // handler time, in the platform's time (already divided by time_dilation)
  Duration billed{};    // rounded up, with initialisation where it is billed
  Duration initialisation{};  // of a cold start; zero when warm
  bool cold_start = false;
  int memory_mb = 0;           // of the function
  int max_memory_used_mb = 0;  // peak of the invocation's process
};

struct InvocationOutcome {
  enum class Kind {
    kSucceeded,      // payload is the function's answer
    kFunctionError,  // the function reported an error itself: error_type, error_message
    kCrashed,        // its process died (signal or exit) without an answer
    kTimedOut,       // ended at the time limit
    kOutOfMemory,    // ended at the memory limit
    kThrottled,      // not started: concurrency or rate limit; worth trying again
    kRejected,     // not started: no such function, payload too large, ... ; not worth trying again
    kUnreachable,  // the platform did not answer; it may or may not have run
  };
  Kind kind = Kind::kSucceeded;
  std::string payload;
  std::string error_type;  // "Runtime.OutOfMemory", "Sandbox.Timedout", or what the function said
  std::string error_message;  // one line for people
  std::string log_tail;       // last 4 KiB of the function's log
  Usage usage;
};
std::string_view to_string(InvocationOutcome::Kind kind);  // "out of memory", "timed out", ...

// One running invocation. Destroying it gives up waiting; it does not stop the function.
class Invocation {
 public:
  virtual ~Invocation() = default;
  // The outcome, or nothing when `deadline` comes first. Can be called again; not from two threads
  // at once.
  virtual std::optional<InvocationOutcome> wait(Deadline deadline) = 0;
};

// Thread-safe.
class FunctionPlatform {
 public:
  virtual ~FunctionPlatform() = default;
  // Starts one function synchronously (the outcome carries its answer). Never throws for what the
  // platform answers: that is the outcome. `function` is a deployed function's name.
  virtual std::unique_ptr<Invocation> invoke(std::string_view function, std::string payload) = 0;
  virtual const PlatformSpec& spec() const = 0;
};

}  // namespace funcpipe
