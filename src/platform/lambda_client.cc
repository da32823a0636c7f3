#include "platform/lambda_client.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "net/base64.h"
#include "net/http_client.h"
#include "platform/report_line.h"

namespace funcpipe {
namespace {

using Kind = InvocationOutcome::Kind;

std::string text_field(const nlohmann::json& body, const char* name) {
  if (!body.is_object()) return {};
  const auto found = body.find(name);
  return found != body.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Kind kind_of_function_error(const InvocationOutcome& outcome) {
  if (outcome.error_type == "Sandbox.Timedout") return Kind::kTimedOut;
  if (outcome.error_type == "Runtime.OutOfMemory") return Kind::kOutOfMemory;
  if (outcome.error_type == "Runtime.ExitError") return Kind::kCrashed;
  // The older form of a time-out carries no type.
  const bool timed_out = outcome.error_message.find("Task timed out after") != std::string::npos;
  return outcome.error_type.empty() && timed_out ? Kind::kTimedOut : Kind::kFunctionError;
}

void read_function_error(InvocationOutcome& outcome) {
  const auto body = nlohmann::json::parse(outcome.payload, nullptr, false);
  outcome.error_type = text_field(body, "errorType");
  outcome.error_message = text_field(body, "errorMessage");
  if (outcome.error_message.empty()) outcome.error_message = outcome.payload.substr(0, 500);
  outcome.kind = kind_of_function_error(outcome);
}

void read_service_error(InvocationOutcome& outcome, const HttpResponse& response) {
  const auto body = nlohmann::json::parse(response.body, nullptr, false);
  // The header may carry a suffix: "ResourceNotFoundException:http://...".
  const std::string_view type = header(response.headers, "x-amzn-ErrorType");
  outcome.error_type = std::string(type.substr(0, type.find(':')));
  outcome.error_message = text_field(body, "Message");
  if (outcome.error_message.empty()) outcome.error_message = text_field(body, "message");
  if (outcome.error_message.empty()) {
    outcome.error_message = fmt::format("HTTP status {}", response.status);
  }
  outcome.kind = response.status == 429   ? Kind::kThrottled
                 : response.status >= 500 ? Kind::kUnreachable
                                          : Kind::kRejected;
}

InvocationOutcome outcome_of_error(const Error& error) {
  InvocationOutcome outcome;
  const bool is_local = error.code() == ErrorCode::kInvalidArgument;  // nothing was sent
  outcome.kind = is_local ? Kind::kRejected : Kind::kUnreachable;
  outcome.error_type = std::string(to_string(error.code()));
  outcome.error_message = error.what();
  return outcome;
}

class LambdaInvocation : public Invocation {
 public:
  LambdaInvocation(HttpRequest request, const HttpClientOptions& options)
      : thread_([this, request = std::move(request), options](const std::stop_token& stop) {
          finish(call(request, options, stop));
        }) {}

  std::optional<InvocationOutcome> wait(Deadline deadline) override {
    std::unique_lock lock(mutex_);
    finished_.wait_until(lock, deadline.time(), [this] { return outcome_.has_value(); });
    return outcome_;
  }

 private:
  static InvocationOutcome call(const HttpRequest& request, const HttpClientOptions& options,
                                const std::stop_token& stop) {
    try {
      return outcome_of_response(HttpClient(options).send(request, Duration::zero(), stop));
    } catch (const Error& error) {
      return outcome_of_error(error);
    } catch (const std::exception& error) {
      return outcome_of_error(Error(ErrorCode::kInternal, error.what()));
    }
  }

  void finish(InvocationOutcome outcome) {
    {
      const std::lock_guard lock(mutex_);
      outcome_ = std::move(outcome);
    }
    finished_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<InvocationOutcome> outcome_;
  std::jthread thread_;  // last: stops first
};

}  // namespace

InvocationOutcome outcome_of_response(HttpResponse response) {
  InvocationOutcome outcome;
  outcome.log_tail =
      base64_decode(header(response.headers, "X-Amz-Log-Result")).value_or(std::string());
  if (const auto usage = parse_report(outcome.log_tail)) outcome.usage = *usage;
  if (response.status != 200) {
    read_service_error(outcome, response);
    return outcome;
  }
  outcome.payload = std::move(response.body);
  if (!header(response.headers, "X-Amz-Function-Error").empty()) read_function_error(outcome);
  return outcome;
}

std::unique_ptr<Invocation> LambdaClient::invoke(std::string_view function, std::string payload) {
  HttpRequest request;
  request.method = "POST";
  request.target = fmt::format("{}/2015-03-31/functions/{}/invocations", options_.endpoint,
                               percent_encode(function));
  request.headers = {{"Content-Type", "application/json"},
                     {"X-Amz-Invocation-Type", "RequestResponse"},
                     {"X-Amz-Log-Type", "Tail"}};
  request.body = std::move(payload);
  if (options_.sign) options_.sign(request);
  return std::make_unique<LambdaInvocation>(std::move(request),
                                            HttpClientOptions{.use_proxy = options_.use_proxy});
}

}  // namespace funcpipe
