#include "platform/invoke_api.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "net/base64.h"
#include "platform/lambda_names.h"
#include "platform/sandbox_environment.h"

namespace funcpipe {
namespace {

constexpr std::size_t kPageSize = 50;  // of ListFunctions, whatever MaxItems says

std::string dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpResponse json_response(int status, const nlohmann::json& json) {
  return {status, {{"Content-Type", "application/json"}}, dump(json)};
}

// `type` without its "Exception" ending.
HttpResponse error_response(int status, std::string_view type, const std::string& message) {
  HttpResponse response =
      json_response(status, {{"Type", "User"}, {"Message", message}, {"message", message}});
  response.headers.emplace_back("x-amzn-ErrorType", fmt::format("{}Exception", type));
  return response;
}

HttpResponse throttled() {
  HttpResponse response = json_response(429, {{"Type", "User"},
                                              {"Reason", "ConcurrentInvocationLimitExceeded"},
                                              {"Message", "Rate Exceeded."},
                                              {"message", "Rate Exceeded."}});
  response.headers.emplace_back("x-amzn-ErrorType", "TooManyRequestsException");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse too_large(std::uint64_t limit) {
  return error_response(
      413, "RequestTooLarge",
      fmt::format("Request must be smaller than {} bytes for the Invoke operation", limit));
}

HttpResponse not_found(const std::string& name) {
  return error_response(404, "ResourceNotFound", "Function not found: " + function_arn(name));
}

HttpResponse invocation_response(const ExecutionResult& result, bool with_log) {
  HttpResponse response{200, {{"Content-Type", "application/json"}}, result.body};
  response.headers.emplace_back("X-Amz-Executed-Version", "$LATEST");
  if (result.failed) response.headers.emplace_back("X-Amz-Function-Error", "Unhandled");
  if (with_log) response.headers.emplace_back("X-Amz-Log-Result", base64_encode(result.log_tail));
  return response;
}

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) ^ device();
}

std::size_t number_or(std::string_view text, std::size_t fallback) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && value > 0 ? value : fallback;
}

nlohmann::json configuration(const LocalHostConfig& config, const LocalFunction& function) {
  const auto limit = std::chrono::ceil<std::chrono::seconds>(config.time_limit).count();
  return {{"FunctionName", function.name},
          {"FunctionArn", function_arn(function.name)},
          {"Runtime", "provided.al2023"},
          {"Role", "arn:aws:iam::000000000000:role/local"},
          {"Handler", function.name},
          {"CodeSize", 0},
          {"CodeSha256", ""},
          {"Description", ""},
          {"Timeout", limit},
          {"MemorySize", function.memory_mb},
          {"LastModified", "1970-01-01T00:00:00.000+0000"},
          {"Version", "$LATEST"},
          {"State", "Active"},
          {"LastUpdateStatus", "Successful"},
          {"PackageType", "Zip"},
          {"Architectures", {"x86_64"}}};
}

}  // namespace

InvokeApi::InvokeApi(EventLoop& loop, const LocalHostConfig& config, const PlatformSpec& spec,
                     SandboxPool& pool, std::string isolation)
    : config_(config),
      spec_(spec),
      pool_(pool),
      isolation_(std::move(isolation)),
      ids_(random_seed()),
      server_(loop,
              {.port = config.port,
               .max_body_bytes = spec.max_request_bytes,
               .too_large = too_large(spec.max_request_bytes)},
              [this](const HttpRequest& request, const HttpServer::Responder& responder) {
                handle(request, responder);
              }) {}

// A version 4 UUID.
std::string InvokeApi::new_id() {
  const std::string high = to_hex(ids_()), low = to_hex(ids_());
  return fmt::format("{}-{}-4{}-a{}-{}", high.substr(0, 8), high.substr(8, 4), high.substr(13, 3),
                     low.substr(1, 3), low.substr(4));
}

void InvokeApi::handle(const HttpRequest& request, const HttpServer::Responder& responder) {
  const HttpTarget target = parse_target(request.target);
  const auto& path = target.segments;
  const bool is_function = path.size() >= 3 && path[0] == "2015-03-31" && path[1] == "functions";
  if (is_function && path.size() == 4 && path[3] == "invocations" && request.method == "POST") {
    return invoke(request, target, responder);
  }
  responder.send(describe(request, target));
}

HttpResponse InvokeApi::describe(const HttpRequest& request, const HttpTarget& target) const {
  const auto& path = target.segments;
  const auto unknown = [&] {
    return error_response(404, "ResourceNotFound",
                          "The local host does not offer " + request.method + " " + request.target);
  };
  if (request.method != "GET") return unknown();
  if (path.size() == 2 && path[0] == "_host" && path[1] == "state") return host_state();
  if (path.size() < 2 || path[0] != "2015-03-31" || path[1] != "functions") return unknown();
  if (path.size() == 2) return list_functions(target);
  const auto name = parse_function_name(path[2]);
  const LocalFunction* function = name ? pool_.find(name->name) : nullptr;
  if (function == nullptr) return not_found(path[2]);
  if (path.size() == 3) {
    return json_response(200, {{"Configuration", configuration(config_, *function)},
                               {"Code", {{"RepositoryType", "local"}}}});
  }
  if (path.size() == 4 && path[3] == "configuration") {
    return json_response(200, configuration(config_, *function));
  }
  return unknown();
}

HttpResponse InvokeApi::list_functions(const HttpTarget& target) const {
  const auto& all = pool_.functions();
  const std::size_t count =
      std::min(kPageSize, number_or(header(target.query, "MaxItems"), kPageSize));
  const std::size_t first = number_or(header(target.query, "Marker"), 0);
  nlohmann::json page = {{"Functions", nlohmann::json::array()}, {"NextMarker", nullptr}};
  for (std::size_t i = first; i < all.size() && i < first + count; ++i) {
    page["Functions"].push_back(configuration(config_, all[i]));
  }
  if (first + count < all.size()) page["NextMarker"] = std::to_string(first + count);
  return json_response(200, page);
}

void InvokeApi::invoke(const HttpRequest& request, const HttpTarget& target,
                       const HttpServer::Responder& responder) {
  const auto name = parse_function_name(target.segments[2]);
  const LocalFunction* function = name ? pool_.find(name->name) : nullptr;
  const std::string qualifier(header(target.query, "Qualifier"));
  const auto is_latest = [](const std::string& version) {
    return version.empty() || version == "$LATEST";
  };
  if (function == nullptr || !is_latest(qualifier) || !is_latest(name->qualifier)) {
    return responder.send(not_found(target.segments[2]));
  }
  const auto type = header(request.headers, "X-Amz-Invocation-Type");
  if (type == "Event" && request.body.size() > spec_.max_event_bytes) {
    return responder.send(too_large(spec_.max_event_bytes));
  }
  if (!request.body.empty() && !nlohmann::json::accept(request.body)) {
    return responder.send(
        error_response(400, "InvalidRequestContent", "Could not parse request body into json"));
  }
  const auto context = base64_decode(header(request.headers, "X-Amz-Client-Context"));
  if (!context) {
    return responder.send(
        error_response(400, "InvalidRequestContent",
                       "Client context must be a valid Base64-encoded JSON object."));
  }
  RuntimeEvent event;
  event.request_id = new_id();
  event.function_arn = function_arn(function->name);
  event.client_context = *context;
  event.trace_id = header(request.headers, "X-Amzn-Trace-Id");
  event.payload = request.body.empty() ? "{}" : request.body;
  start(*function, request, std::move(event), responder);
}

void InvokeApi::start(const LocalFunction& function, const HttpRequest& request, RuntimeEvent event,
                      const HttpServer::Responder& responder) {
  const auto type = header(request.headers, "X-Amz-Invocation-Type");
  const std::string id = event.request_id;
  const auto send = [responder, id](HttpResponse response) {
    response.headers.emplace_back("x-amzn-RequestId", id);
    responder.send(std::move(response));
  };
  if (type == "DryRun") return send({204, {}, ""});
  if (type == "Event") {
    pool_.enqueue(function, {std::move(event), std::nullopt, nullptr});
    return send({202, {}, ""});
  }
  if (!type.empty() && type != "RequestResponse") {
    return send(error_response(400, "InvalidParameterValue",
                               fmt::format("Invocation type '{}' is unknown", type)));
  }
  const bool with_log = header(request.headers, "X-Amz-Log-Type") == "Tail";
  const auto done = [send, with_log](const ExecutionResult& result) {
    send(invocation_response(result, with_log));
  };
  if (!pool_.run(function, {std::move(event), std::nullopt, done})) send(throttled());
}

HttpResponse InvokeApi::host_state() const {
  nlohmann::json state = {{"isolation", isolation_},
                          {"sandboxes", nlohmann::json::array()},
                          {"functions", nlohmann::json::object()}};
  for (const auto& sandbox : pool_.sandboxes()) {
    state["sandboxes"].push_back({{"function", sandbox->function().name},
                                  {"pid", sandbox->pid()},
                                  {"busy", sandbox->busy()}});
  }
  for (const auto& [name, account] : pool_.accounts()) {
    state["functions"][name] = {{"invocations", account.invocations},
                                {"failures", account.failures},
                                {"throttles", account.throttles},
                                {"cold_starts", account.cold_starts},
                                {"gb_seconds", account.gb_seconds}};
  }
  return json_response(200, state);
}

}  // namespace funcpipe
