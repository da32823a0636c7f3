// A function for the tests: does what its event says, e.g. {"do":"sleep","ms":100}.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.h"
#include "net/http_client.h"
#include "platform/runtime_api_client.h"

namespace {

using funcpipe::FunctionEvent;
using nlohmann::json;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// CPU seconds used in `wall` seconds of spinning.
json spin(double wall) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wall);
  const std::clock_t start = std::clock();
  while (std::chrono::steady_clock::now() < end) {
  }
  return {{"cpu_seconds", static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC}};
}

json eat(std::size_t megabytes) {
  const std::size_t bytes = megabytes << 20;
  const std::unique_ptr<char[]> memory(new char[bytes]);
  for (std::size_t at = 0; at < bytes; at += 4096) {
    memory[at] = 1;
    if (at % (4 << 20) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {{"eaten_mb", megabytes}, {"first", static_cast<int>(memory[0])}};
}

json sleep(const json& event) {
  std::this_thread::sleep_for(std::chrono::milliseconds(event.at("ms")));
  return {{"slept", event.at("ms")}};
}

json context(const FunctionEvent& event) {
  const auto left = event.deadline - std::chrono::steady_clock::now();
  return {{"pid", ::getpid()},
          {"pgid", ::getpgrp()},
          {"request_id", event.request_id},
          {"arn", event.function_arn},
          {"left_ms", std::chrono::duration_cast<std::chrono::milliseconds>(left).count()}};
}

json environment(const json& event) {
  json values = json::object();
  for (const auto& name : event.at("names")) {
    values[name.get<std::string>()] = variable(name.get<std::string>().c_str());
  }
  return values;
}

json write_log(const json& event) {
  std::cout << event.value("out", "") << std::flush;
  std::cerr << event.value("err", "") << std::flush;
  return json::object();
}

[[noreturn]] void crash(const json& event) {
  std::cerr << "about to crash\n";
  ::raise(event.value("signal", SIGABRT));
  std::abort();
}

// Posts what the protocol forbids and tells the statuses.
json break_protocol(const FunctionEvent& event) {
  const std::string base =
      std::string("http://") + variable("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/";
  funcpipe::HttpClient http({.use_proxy = false});
  const auto status = [&](const std::string& path, const funcpipe::HttpHeaders& headers) {
    return http.send({"POST", base + path, headers, "{}"}, std::chrono::seconds(5)).status;
  };
  return {{"unknown_id", status("invocation/no-such-id/response", {})},
          {"unknown_mode", status("invocation/" + event.request_id + "/response",
                                  {{"Lambda-Runtime-Function-Response-Mode", "sideways"}})},
          {"late_init_error", status("init/error", {})},
          {"unknown_path", status("nonsense", {})}};
}

// Status of a second answer to the same event.
int answer_again(const std::string& request_id) {
  const std::string url = std::string("http://") + variable("AWS_LAMBDA_RUNTIME_API") +
                          "/2018-06-01/runtime/invocation/" + request_id + "/response";
  funcpipe::HttpClient http({.use_proxy = false});
  return http.send({"POST", url, {}, "{}"}, std::chrono::seconds(5)).status;
}

// A poll that goes away while it waits.
void poll_and_leave() {
  funcpipe::RuntimeApiClient other(variable("AWS_LAMBDA_RUNTIME_API"));
  std::stop_source source;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    source.request_stop();
  });
  try {
    other.next(source.get_token());
  } catch (const funcpipe::Error&) {
  }
}

json run(const json& event, const FunctionEvent& raw) {
  const std::string what = event.is_object() ? event.value("do", "echo") : "echo";
  if (what == "sleep") return sleep(event);
  if (what == "spin") return spin(event.at("seconds"));
  if (what == "eat") return eat(event.at("mb"));
  if (what == "context") return context(raw);
  if (what == "env") return environment(event);
  if (what == "log") return write_log(event);
  if (what == "big") return std::string(event.at("bytes").get<std::size_t>() - 2, 'x');
  if (what == "crash") crash(event);
  if (what == "exit") std::_Exit(event.at("code"));
  if (what == "break") return break_protocol(raw);
  if (what == "fail") throw std::runtime_error(event.value("message", "as asked"));
  return event;
}

// Answers one event; what it does beside the protocol is in "then".
void serve(funcpipe::RuntimeApiClient& api, const FunctionEvent& event) {
  json result;
  try {
    result = run(json::parse(event.payload), event);
  } catch (const std::exception& error) {
    return api.report_error(event.request_id, "Function.Failed", error.what());
  }
  try {
    api.respond(event.request_id, result.dump());
  } catch (const funcpipe::Error& error) {
    if (error.code() != funcpipe::ErrorCode::kResourceExhausted) throw;
    std::cerr << error.what() << "\n";
  }
}

void after(const json& input, const FunctionEvent& event) {
  const std::string then = input.is_object() ? input.value("then", "") : "";
  if (then == "answer again")
    std::cout << "second answer: " << answer_again(event.request_id) << "\n" << std::flush;
  if (then == "poll and leave") poll_and_leave();
  if (then == "exit") std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  funcpipe::RuntimeApiClient api(variable("AWS_LAMBDA_RUNTIME_API"));
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--exit-at-start") return 3;
  if (mode == "--init-error") {
    api.report_init_error("Function.NoModel", "no such model");
    return 1;
  }
  std::string forgotten;
  while (true) {
    const FunctionEvent event = api.next();
    const json input = json::parse(event.payload);
    if (input.is_object() && input.value("do", "") == "forget once" &&
        forgotten != event.request_id) {
      forgotten = event.request_id;
      continue;
    }
    serve(api, event);
    after(input, event);
  }
}
