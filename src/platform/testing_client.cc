// A client that can be killed by tests: starts a host with two busy functions, says so in one line
// of JSON and waits.
#include <chrono>
#include <iostream>
#include <thread>

#include <nlohmann/json.hpp>

#include "platform/testing_local_host.h"

int main() {
  funcpipe::TestingLocalHost host;
  const auto one = host.start("main", {{"do", "sleep"}, {"ms", 60000}});
  const auto two = host.start("half", {{"do", "spin"}, {"seconds", 60}});
  nlohmann::json state;
  host.wait_for_state([&](const nlohmann::json& now) {
    state = now;
    return now["sandboxes"].size() == 2 && now["sandboxes"][0]["pid"] != 0 &&
           now["sandboxes"][1]["pid"] != 0;
  });
  state["host"] = host.process().pid();
  state["port"] = host.process().port();
  std::cout << state.dump() << std::endl;
  std::this_thread::sleep_for(std::chrono::minutes(1));
}
