// The one exception type of the project, and its canonical codes.
//
// Exceptions end an operation; what a caller expects (a missing object, a key already there) is a
// value. Backends translate their own failures (errno, HTTP status, c10::Error) into Error once, at
// their border, and say there whether trying the same call again can help.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace funcpipe {

enum class ErrorCode {
  kInvalidArgument,     // the input is wrong, whatever the state of the system
  kNotFound,            // something named by the caller does not exist
  kAlreadyExists,       // something to be created is there already
  kFailedPrecondition,  // right input, wrong state: the caller must change something first
  kResourceExhausted,   // memory, disk, quota, concurrency
  kDeadlineExceeded,    // a wait ended without what it waited for
  kCancelled,           // stopped on request
  kUnavailable,         // a service does not answer now
  kDataLoss,            // stored data is damaged or incomplete
  kInfeasible,          // no solution satisfies the constraints
  kUnimplemented,       // not offered by this backend
  kInternal,            // a bug
};

// "invalid_argument", "not_found", ...: stable names for logs, payloads and exit messages.
std::string_view to_string(ErrorCode code);
// The inverse; an unknown name gives kInternal.
ErrorCode error_code_from_string(std::string_view name);

class Error : public std::runtime_error {
 public:
  enum class Retry { kNever, kMayHelp };

  Error(ErrorCode code, const std::string& message, Retry retry = Retry::kNever)
      : std::runtime_error(message), code_(code), retry_(retry) {}

  ErrorCode code() const { return code_; }
  bool retryable() const { return retry_ == Retry::kMayHelp; }

  // The same error seen from one level up: "context: message".
  Error with_context(std::string_view context) const {
    return Error(code_, fmt::format("{}: {}", context, what()), retry_);
  }

 private:
  ErrorCode code_;
  Retry retry_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Error from errno-style code `error_number` of an operation on `what` ("cannot write /x/y").
Error error_from_errno(int error_number, std::string_view what);

}  // namespace funcpipe
