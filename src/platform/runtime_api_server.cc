#include "platform/runtime_api_server.h"

#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace funcpipe {
namespace {

// Above the limit of an answer (6 MiB + 100 bytes), so that a larger one is judged here.
constexpr std::uint64_t kMaxBodyBytes = 64ULL * 1024 * 1024;

HttpResponse error_response(int status, std::string_view type, std::string_view message) {
  const nlohmann::json body = {{"errorType", type}, {"errorMessage", message}};
  return {status,
          {{"Content-Type", "application/json"}},
          body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

HttpResponse response_of(RuntimeApiHandler::Verdict verdict) {
  switch (verdict) {
    case RuntimeApiHandler::Verdict::kAccepted:
      return {202, {{"Content-Type", "application/json"}}, R"({"status":"OK"})"};
    case RuntimeApiHandler::Verdict::kUnknownRequest:
      return error_response(400, "InvalidRequestID", "Invalid request ID");
    case RuntimeApiHandler::Verdict::kWrongState:
      return error_response(403, "InvalidStateTransition", "State transition is not allowed");
    case RuntimeApiHandler::Verdict::kTooLarge:
      return error_response(413, "RequestEntityTooLarge", "Exceeded maximum allowed payload size");
  }
  return error_response(500, "InternalServerError", "Internal server error");
}

// What the process reported: its body, or one made from the header when that is no JSON object.
std::string error_report(HttpRequest& request) {
  const auto body = nlohmann::json::parse(request.body, nullptr, false);
  if (body.is_object()) return std::move(request.body);
  const std::string type(header(request.headers, "Lambda-Runtime-Function-Error-Type"));
  return nlohmann::json{{"errorType", type.empty() ? "Runtime.Unknown" : type},
                        {"errorMessage", ""}}
      .dump();
}

bool is_response_mode_known(const HttpRequest& request) {
  const auto mode = header(request.headers, "Lambda-Runtime-Function-Response-Mode");
  return mode.empty() || mode == "streaming";
}

}  // namespace

void send_event(const HttpServer::Responder& poll, const RuntimeEvent& event) {
  HttpResponse response;
  response.headers = {{"Content-Type", "application/json"},
                      {"Lambda-Runtime-Aws-Request-Id", event.request_id},
                      {"Lambda-Runtime-Deadline-Ms", fmt::format("{}", event.deadline_unix_ms)},
                      {"Lambda-Runtime-Invoked-Function-Arn", event.function_arn},
                      {"Lambda-Runtime-Trace-Id", event.trace_id}};
  if (!event.client_context.empty()) {
    response.headers.emplace_back("Lambda-Runtime-Client-Context", event.client_context);
  }
  response.body = event.payload;
  poll.send(std::move(response));
}

RuntimeApiServer::RuntimeApiServer(EventLoop& loop, RuntimeApiHandler& handler)
    : handler_(handler),
      server_(loop, {.port = 0, .max_body_bytes = kMaxBodyBytes},
              [this](HttpRequest request, const HttpServer::Responder& responder) {
                handle(std::move(request), responder);
              }) {}

std::string RuntimeApiServer::address() const {
  return fmt::format("127.0.0.1:{}", server_.port());
}

void RuntimeApiServer::handle(HttpRequest request, const HttpServer::Responder& responder) {
  const auto path = parse_target(request.target).segments;
  const bool is_ours = path.size() >= 4 && path[0] == "2018-06-01" && path[1] == "runtime";
  if (is_ours && request.method == "GET" && path.size() == 4 && path[2] == "invocation" &&
      path[3] == "next") {
    return handler_.on_next(responder);
  }
  if (is_ours && request.method == "POST") {
    if (path.size() == 4 && path[2] == "init" && path[3] == "error") {
      return handle_post("init", std::move(request), "", responder);
    }
    if (path.size() == 5 && path[2] == "invocation") {
      return handle_post(path[4], std::move(request), path[3], responder);
    }
  }
  responder.send(error_response(404, "NotFound", request.method + " " + request.target));
}

void RuntimeApiServer::handle_post(const std::string& what, HttpRequest request,
                                   const std::string& request_id,
                                   const HttpServer::Responder& responder) {
  using Verdict = RuntimeApiHandler::Verdict;
  std::optional<Verdict> verdict;
  if (what == "response" && !is_response_mode_known(request)) {
    return responder.send(
        error_response(400, "InvalidFunctionResponseMode", "unknown response mode"));
  }
  if (what == "response") verdict = handler_.on_response(request_id, std::move(request.body));
  if (what == "error") verdict = handler_.on_error(request_id, error_report(request));
  if (what == "init") verdict = handler_.on_init_error(error_report(request));
  responder.send(verdict ? response_of(*verdict) : error_response(404, "NotFound", request.target));
}

}  // namespace funcpipe
