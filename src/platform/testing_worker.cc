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
  ::raise(event.value("signal", SIGSEGV));
  std::abort();
}

json run(const json& event, const FunctionEvent& raw) {
  const std::string what = event.value("do", "echo");
  if (what == "sleep") return sleep(event);
  if (what == "spin") return spin(event.at("seconds"));
  if (what == "eat") return eat(event.at("mb"));
  if (what == "context") return context(raw);
  if (what == "env") return environment(event);
  if (what == "log") return write_log(event);
  if (what == "big") return std::string(event.at("bytes").get<std::size_t>() - 2, 'x');
  if (what == "crash") crash(event);
  if (what == "exit") std::_Exit(event.at("code"));
  if (what == "fail") throw std::runtime_error(event.value("message", "as asked"));
  return event;
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
  while (true) {
    const FunctionEvent event = api.next();
    try {
      api.respond(event.request_id, run(json::parse(event.payload), event).dump());
    } catch (const std::exception& error) {
      api.report_error(event.request_id, "Function.Failed", error.what());
    }
  }
}
