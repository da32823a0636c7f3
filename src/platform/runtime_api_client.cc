#include "platform/runtime_api_client.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr Duration kPostTimeout = std::chrono::seconds(60);

TimePoint deadline_of(const HttpHeaders& headers) {
  const std::string_view text = header(headers, "Lambda-Runtime-Deadline-Ms");
  std::int64_t unix_ms = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), unix_ms).ec != std::errc()) {
    fail(ErrorCode::kInternal, "Lambda-Runtime-Deadline-Ms is '{}', not a number", text);
  }
  const std::chrono::system_clock::time_point wall{std::chrono::milliseconds(unix_ms)};
  return std::chrono::steady_clock::now() + (wall - std::chrono::system_clock::now());
}

std::string error_body(std::string_view type, std::string_view message) {
  const nlohmann::json body = {
      {"errorMessage", message}, {"errorType", type}, {"stackTrace", nlohmann::json::array()}};
  // A message may quote bytes that are no UTF-8.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpHeaders error_headers(std::string_view type) {
  return {{"Content-Type", "application/json"},
          {"Lambda-Runtime-Function-Error-Type", std::string(type)}};
}

}  // namespace

RuntimeApiClient::RuntimeApiClient(std::string_view address)
    : base_(fmt::format("http://{}/2018-06-01/runtime", address)),
      http_({.connect_timeout = std::chrono::seconds(1), .use_proxy = false}) {}

FunctionEvent RuntimeApiClient::next(const std::stop_token& stop) {
  HttpResponse response =
      http_.send({"GET", base_ + "/invocation/next", {}, ""}, Duration::zero(), stop);
  if (response.status != 200) {
    fail(ErrorCode::kFailedPrecondition, "runtime API: next was refused with status {}: {}",
         response.status, response.body);
  }
  FunctionEvent event;
  event.request_id = header(response.headers, "Lambda-Runtime-Aws-Request-Id");
  event.function_arn = header(response.headers, "Lambda-Runtime-Invoked-Function-Arn");
  event.deadline = deadline_of(response.headers);
  event.payload = std::move(response.body);
  return event;
}

void RuntimeApiClient::respond(std::string_view request_id, std::string body) {
  post(fmt::format("/invocation/{}/response", request_id), std::move(body),
       {{"Content-Type", "application/json"}});
}

void RuntimeApiClient::report_error(std::string_view request_id, std::string_view type,
                                    std::string_view message) {
  post(fmt::format("/invocation/{}/error", request_id), error_body(type, message),
       error_headers(type));
}

void RuntimeApiClient::report_init_error(std::string_view type, std::string_view message) {
  post("/init/error", error_body(type, message), error_headers(type));
}

void RuntimeApiClient::post(std::string_view path, std::string body, HttpHeaders headers) {
  const std::size_t size = body.size();
  const HttpResponse response =
      http_.send({"POST", fmt::format("{}{}", base_, path), std::move(headers), std::move(body)},
                 kPostTimeout);
  if (response.status == 202) return;
  if (response.status == 413) {
    fail(ErrorCode::kResourceExhausted, "runtime API: an answer of {} bytes is above the limit",
         size);
  }
  fail(ErrorCode::kFailedPrecondition, "runtime API: {} was refused with status {}: {}", path,
       response.status, response.body);
}

}  // namespace funcpipe
