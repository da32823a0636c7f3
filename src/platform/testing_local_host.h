// A local host with the testing worker, for tests of this folder.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "net/http_client.h"
#include "platform/lambda_client.h"
#include "platform/local_host_process.h"

namespace funcpipe {

using Kind = InvocationOutcome::Kind;

inline LocalHostConfig testing_config(std::vector<std::string> worker_arguments = {}) {
  LocalHostConfig config;
  config.functions = {{"main", 1769}, {"half", 885}, {"small", 160}};
  config.command = {FUNCPIPE_TESTING_WORKER};
  config.command.insert(config.command.end(), worker_arguments.begin(), worker_arguments.end());
  config.time_limit = std::chrono::seconds(10);
  return config;
}

class TestingLocalHost {
 public:
  explicit TestingLocalHost(const LocalHostConfig& config = testing_config())
      : process_({FUNCPIPE_TESTING_HOST}, config), client_({.endpoint = process_.endpoint()}) {}

  std::unique_ptr<Invocation> start(std::string_view function, const nlohmann::json& event) {
    return client_.invoke(function, event.dump());
  }
  static InvocationOutcome finish(Invocation& invocation) {
    auto outcome = invocation.wait(Deadline::after(SteadyClock(), std::chrono::seconds(20)));
    if (!outcome) throw std::runtime_error("no outcome within 20 s");
    return *outcome;
  }
  InvocationOutcome invoke(std::string_view function, const nlohmann::json& event) {
    return finish(*start(function, event));
  }
  // The answer of an invocation that must succeed.
  nlohmann::json call(std::string_view function, const nlohmann::json& event) {
    const auto outcome = invoke(function, event);
    EXPECT_EQ(outcome.kind, Kind::kSucceeded)
        << outcome.error_type << ": " << outcome.error_message;
    return nlohmann::json::parse(outcome.payload, nullptr, false);
  }
  HttpResponse send(const std::string& method, const std::string& path, HttpHeaders headers = {},
                    std::string body = "") {
    HttpClient http({.use_proxy = false});
    return http.send({method, endpoint() + path, std::move(headers), std::move(body)},
                     std::chrono::seconds(20));
  }
  nlohmann::json state() { return nlohmann::json::parse(send("GET", "/_host/state").body); }
  template <typename Condition>
  bool wait_for_state(Condition holds, std::chrono::seconds limit = std::chrono::seconds(5)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!holds(state())) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  std::string endpoint() const { return process_.endpoint(); }
  LocalHostProcess& process() { return process_; }
  LambdaClient& client() { return client_; }

 private:
  LocalHostProcess process_;
  LambdaClient client_;
};

}  // namespace funcpipe
