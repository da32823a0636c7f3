// The function's side of the AWS Lambda Runtime API: takes events one after the other and answers
// them. Works on Lambda and on the local host.
//
// Not thread-safe. Errors: Error(kUnavailable) when the service does not answer, kCancelled,
// kResourceExhausted for an answer above the platform's limit (the invocation has failed then,
// there is nothing more to report), kFailedPrecondition when the service refuses the call for
// another reason.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "net/http_client.h"

namespace funcpipe {

struct FunctionEvent {
  std::string request_id;
  std::string function_arn;
  TimePoint deadline;  // of the steady clock: the process is killed then
  std::string payload;
};

class RuntimeApiClient {
 public:
  // `address` is the value of AWS_LAMBDA_RUNTIME_API: "host:port".
  explicit RuntimeApiClient(std::string_view address);

  // Blocks until there is an event, for hours if need be: the process may be frozen meanwhile.
  FunctionEvent next(const std::stop_token& stop = {});
  void respond(std::string_view request_id, std::string body);
  // `type` is "Category.Reason", e.g. "Function.InvalidEvent".
  void report_error(std::string_view request_id, std::string_view type, std::string_view message);
  // Instead of the first next(); the process should exit afterwards.
  void report_init_error(std::string_view type, std::string_view message);

 private:
  void post(std::string_view path, std::string body, HttpHeaders headers);

  std::string base_;
  HttpClient http_;
};

}  // namespace funcpipe
