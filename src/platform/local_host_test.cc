#include "platform/local_host.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/base64.h"
#include "platform/cpu_features.h"
#include "platform/testing_local_host.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

const std::string kInvokeMain = "/2015-03-31/functions/main/invocations";

TEST(LocalHost, RunsAFunctionAndReusesItsProcess) {
  TestingLocalHost host;
  const auto first = host.invoke("main", {{"do", "context"}});
  EXPECT_EQ(first.kind, Kind::kSucceeded);
  EXPECT_TRUE(first.usage.cold_start);
  EXPECT_GT(first.usage.initialisation, 0ms);
  EXPECT_EQ(first.usage.memory_mb, 1769);
  EXPECT_GT(first.usage.max_memory_used_mb, 1);
  EXPECT_GE(first.usage.billed, first.usage.initialisation + first.usage.duration - 20us);
  const auto second = host.invoke("main", {{"do", "context"}});
  EXPECT_FALSE(second.usage.cold_start);
  const json one = json::parse(first.payload), two = json::parse(second.payload);
  EXPECT_EQ(one["pid"], two["pid"]);
  EXPECT_EQ(one["pid"], one["pgid"]);
  EXPECT_NE(one["request_id"], two["request_id"]);
  EXPECT_EQ(one["arn"], "arn:aws:lambda:us-east-1:000000000000:function:main");
  EXPECT_NEAR(one["left_ms"].get<double>(), 10'000, 2000);
  const json account = host.state()["functions"]["main"];
  EXPECT_EQ(account["invocations"], 2);
  EXPECT_EQ(account["cold_starts"], 1);
  EXPECT_NEAR(account["gb_seconds"].get<double>(),
              gb_seconds(1769, first.usage.billed) + gb_seconds(1769, second.usage.billed), 1e-9);
}

TEST(LocalHost, StartsProcessesSideBySideAndPrefersTheLastUsed) {
  TestingLocalHost host;
  std::vector<std::unique_ptr<Invocation>> running;
  for (int i = 0; i < 4; ++i)
    running.push_back(host.start("main", {{"do", "sleep"}, {"ms", 300 + 20 * i}}));
  for (const auto& one : running) EXPECT_EQ(TestingLocalHost::finish(*one).kind, Kind::kSucceeded);
  EXPECT_EQ(host.state()["sandboxes"].size(), 4);
  std::set<int> pids;
  for (int i = 0; i < 5; ++i) pids.insert(host.call("main", {{"do", "context"}})["pid"].get<int>());
  EXPECT_EQ(pids.size(), 1);
}

TEST(LocalHost, ThrottlesAboveItsConcurrency) {
  auto config = testing_config();
  config.max_concurrency = 2;
  TestingLocalHost host(config);
  const auto one = host.start("main", {{"do", "sleep"}, {"ms", 400}});
  const auto two = host.start("half", {{"do", "sleep"}, {"ms", 400}});
  ASSERT_TRUE(
      host.wait_for_state([](const json& state) { return state["sandboxes"].size() == 2; }));
  const auto response = host.send("POST", kInvokeMain, {}, "{}");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(header(response.headers, "x-amzn-ErrorType"), "TooManyRequestsException");
  EXPECT_EQ(header(response.headers, "Retry-After"), "1");
  EXPECT_EQ(json::parse(response.body)["Reason"], "ConcurrentInvocationLimitExceeded");
  EXPECT_EQ(host.invoke("main", json::object()).kind, Kind::kThrottled);
  EXPECT_EQ(TestingLocalHost::finish(*one).kind, Kind::kSucceeded);
  EXPECT_EQ(TestingLocalHost::finish(*two).kind, Kind::kSucceeded);
  // A warm process of another function makes room.
  EXPECT_EQ(host.invoke("small", json::object()).kind, Kind::kSucceeded);
  EXPECT_TRUE(
      host.wait_for_state([](const json& state) { return state["sandboxes"].size() == 2; }));
}

TEST(LocalHost, QueuesEventsUntilThereIsRoom) {
  auto config = testing_config();
  config.max_concurrency = 1;
  TestingLocalHost host(config);
  for (int i = 0; i < 3; ++i) {
    const auto response = host.send("POST", kInvokeMain, {{"X-Amz-Invocation-Type", "Event"}},
                                    R"({"do":"sleep","ms":30})");
    EXPECT_EQ(response.status, 202);
    EXPECT_EQ(response.body, "");
    EXPECT_EQ(header(response.headers, "x-amzn-RequestId").size(), 36);
  }
  EXPECT_TRUE(host.wait_for_state(
      [](const json& state) { return state["functions"]["main"]["invocations"] == 3; }));
  EXPECT_EQ(host.state()["functions"]["main"]["cold_starts"], 1);
}

TEST(LocalHost, AnswersAsTheInvokeApiDoes) {
  TestingLocalHost host;
  EXPECT_EQ(host.send("POST", kInvokeMain, {{"X-Amz-Invocation-Type", "DryRun"}}, "{}").status,
            204);
  const auto unknown = host.send("POST", "/2015-03-31/functions/nope/invocations", {}, "{}");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(header(unknown.headers, "x-amzn-ErrorType"), "ResourceNotFoundException");
  EXPECT_EQ(json::parse(unknown.body)["Type"], "User");
  EXPECT_EQ(host.send("POST", kInvokeMain + "?Qualifier=7", {}, "{}").status, 404);
  const auto broken = host.send("POST", kInvokeMain, {}, "{not json");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(header(broken.headers, "x-amzn-ErrorType"), "InvalidRequestContentException");
  EXPECT_EQ(host.send("POST", kInvokeMain, {{"X-Amz-Invocation-Type", "Later"}}, "{}").status, 400);
  EXPECT_EQ(host.send("DELETE", "/2015-03-31/functions/main").status, 404);

  const auto good = host.send(
      "POST",
      "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Amain/"
      "invocations?Qualifier=$LATEST");
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.body, "{}");
  EXPECT_EQ(header(good.headers, "X-Amz-Executed-Version"), "$LATEST");
  EXPECT_EQ(header(good.headers, "X-Amz-Log-Result"), "");
  EXPECT_EQ(header(good.headers, "X-Amz-Function-Error"), "");
  EXPECT_EQ(header(good.headers, "x-amzn-RequestId").size(), 36);
}

TEST(LocalHost, ListsItsFunctionsInPages) {
  auto config = testing_config();
  for (int i = 0; i < 60; ++i) config.functions.push_back({fmt::format("f{}", i), 128 + i});
  TestingLocalHost host(config);
  std::vector<std::string> names;
  std::string marker;
  do {
    const auto page =
        json::parse(host.send("GET", "/2015-03-31/functions/?MaxItems=1000&Marker=" + marker).body);
    EXPECT_LE(page["Functions"].size(), 50);
    for (const auto& one : page["Functions"]) names.push_back(one["FunctionName"]);
    marker = page["NextMarker"].is_null() ? "" : page["NextMarker"].get<std::string>();
  } while (!marker.empty());
  EXPECT_EQ(names.size(), 63);
  EXPECT_EQ(names.back(), "f59");
  const auto one = json::parse(host.send("GET", "/2015-03-31/functions/half").body);
  EXPECT_EQ(one["Configuration"]["MemorySize"], 885);
  EXPECT_EQ(json::parse(host.send("GET", "/2015-03-31/functions/half/configuration").body)["State"],
            "Active");
}

TEST(LocalHost, KeepsThePayloadLimits) {
  TestingLocalHost host;
  constexpr std::size_t kLimit = 6 * 1024 * 1024;
  const auto text = [](std::size_t bytes) { return '"' + std::string(bytes - 2, 'x') + '"'; };
  EXPECT_TRUE(host.send("POST", kInvokeMain, {}, text(kLimit)).body == text(kLimit));
  const auto refused = host.send("POST", kInvokeMain, {}, text(kLimit + 1));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(header(refused.headers, "x-amzn-ErrorType"), "RequestTooLargeException");
  const HttpHeaders event = {{"X-Amz-Invocation-Type", "Event"}};
  EXPECT_EQ(host.send("POST", kInvokeMain, event, text(1024 * 1024)).status, 202);
  EXPECT_EQ(host.send("POST", kInvokeMain, event, text(1024 * 1024 + 1)).status, 413);

  EXPECT_EQ(host.invoke("main", {{"do", "big"}, {"bytes", kLimit}}).payload.size(), kLimit);
  const auto big = host.invoke("main", {{"do", "big"}, {"bytes", kLimit + 200}});
  EXPECT_EQ(big.kind, Kind::kFunctionError);
  EXPECT_EQ(big.error_type, "Function.ResponseSizeTooLarge");
  EXPECT_EQ(host.invoke("main", json::object()).kind, Kind::kSucceeded);
}

TEST(LocalHost, TellsErrorsCrashesAndExitsApart) {
  TestingLocalHost host;
  const auto failed = host.invoke("main", {{"do", "fail"}, {"message", "bad \"input\""}});
  EXPECT_EQ(failed.kind, Kind::kFunctionError);
  EXPECT_EQ(failed.error_type, "Function.Failed");
  EXPECT_EQ(failed.error_message, "bad \"input\"");
  const auto crashed = host.invoke("main", {{"do", "crash"}});
  EXPECT_EQ(crashed.kind, Kind::kCrashed);
  EXPECT_THAT(crashed.error_message,
              HasSubstr("Error: Runtime exited with error: signal: aborted"));
  EXPECT_THAT(crashed.log_tail, HasSubstr("about to crash"));
  const auto exited = host.invoke("main", {{"do", "exit"}, {"code", 4}});
  EXPECT_EQ(exited.kind, Kind::kCrashed);
  EXPECT_EQ(exited.error_type, "Runtime.ExitError");
  EXPECT_THAT(exited.error_message, HasSubstr("exit status 4"));
  EXPECT_THAT(host.invoke("main", {{"do", "exit"}, {"code", 0}}).error_message,
              HasSubstr("Runtime exited without providing a reason"));
  EXPECT_EQ(host.invoke("main", json::object()).kind, Kind::kSucceeded);
}

TEST(LocalHost, ReportsFailuresBeforeTheFirstPoll) {
  TestingLocalHost exits(testing_config({"--exit-at-start"}));
  const auto exited = exits.invoke("main", json::object());
  EXPECT_EQ(exited.kind, Kind::kCrashed);
  EXPECT_THAT(exited.error_message, HasSubstr("exit status 3"));
  EXPECT_GT(exited.usage.initialisation, 0ms);
  TestingLocalHost reports(testing_config({"--init-error"}));
  const auto reported = reports.invoke("main", json::object());
  EXPECT_EQ(reported.kind, Kind::kFunctionError);
  EXPECT_EQ(reported.error_type, "Function.NoModel");
  EXPECT_EQ(reported.error_message, "no such model");
}

TEST(LocalHost, ReturnsTheTailOfTheLogAndKeepsTheWhole) {
  const TemporaryDirectory folder;
  auto config = testing_config();
  config.log_dir = folder.path() / "logs";
  TestingLocalHost host(config);
  const auto first = host.invoke("main", {{"do", "log"}, {"out", "to out\n"}, {"err", "to err\n"}});
  EXPECT_THAT(first.log_tail, HasSubstr("to out\nto err\n"));
  EXPECT_THAT(first.log_tail, testing::StartsWith("START RequestId: "));
  const auto second =
      host.invoke("main", {{"do", "log"}, {"out", std::string(10'000, 'y') + "\nend\n"}});
  EXPECT_EQ(second.log_tail.size(), 4096);
  EXPECT_THAT(second.log_tail, HasSubstr("y\nend\n"));
  EXPECT_THAT(second.log_tail, testing::Not(HasSubstr("to out")));
  EXPECT_EQ(second.usage.memory_mb, 1769);
  const auto file = read_text_file(config.log_dir / "main-1.log");
  EXPECT_THAT(file, HasSubstr("to out\nto err\n"));
  EXPECT_THAT(file, HasSubstr(std::string(10'000, 'y')));
}

TEST(LocalHost, SpeaksTheRuntimeApiStrictly) {
  TestingLocalHost host;
  const json statuses = host.call("main", {{"do", "break"}, {"then", "answer again"}});
  EXPECT_EQ(statuses, (json{{"unknown_id", 400},
                            {"unknown_mode", 400},
                            {"late_init_error", 403},
                            {"unknown_path", 404}}));
  // The second answer's status went to the log after the answer: the next invocation flushes it.
  const TemporaryDirectory folder;
  auto config = testing_config();
  config.log_dir = folder.path();
  TestingLocalHost logged(config);
  logged.call("main", {{"then", "answer again"}});
  logged.call("main", json::object());
  EXPECT_THAT(read_text_file(folder.path() / "main-1.log"), HasSubstr("second answer: 403"));
}

TEST(LocalHost, LosesNoEventToADeadPoller) {
  TestingLocalHost host;
  host.call("main", {{"then", "poll and leave"}});
  EXPECT_EQ(host.call("main", {{"n", 1}}),
            (json{{"n", 1}}));  // while the poll waits, or just after
  host.call("main", {{"then", "poll and leave"}});
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(host.call("main", {{"n", 2}}), (json{{"n", 2}}));
  EXPECT_EQ(host.call("main", {{"do", "forget once"}})["do"], "forget once");
}

TEST(LocalHost, StartsAnotherProcessWhenAWarmOneHasGone) {
  TestingLocalHost host;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(host.invoke("main", {{"then", "exit"}}).kind, Kind::kSucceeded);
}

TEST(LocalHost, SetsTheEnvironmentOfLambda) {
  auto config = testing_config();
  config.environment = {"EXTRA=a=b", "TZ=Asia/Shanghai"};
  config.time_dilation = 2;
  config.uplink_bytes_per_second = 70e6;
  config.latency = 40ms;
  TestingLocalHost host(config);
  const json values = host.call(
      "half", {{"do", "env"},
               {"names",
                {"AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_REGION",
                 "EXTRA", "TZ", "HOME", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_CORETYPE",
                 "FUNCPIPE_UPLINK", "FUNCPIPE_DOWNLINK", "FUNCPIPE_LATENCY_NS"}}});
  EXPECT_EQ(values, (json{{"AWS_LAMBDA_FUNCTION_NAME", "half"},
                          {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "885"},
                          {"AWS_REGION", "us-east-1"},
                          {"EXTRA", "a=b"},
                          {"TZ", "Asia/Shanghai"},
                          {"HOME", ""},
                          {"OMP_NUM_THREADS", "1"},
                          {"OMP_WAIT_POLICY", "passive"},
                          {"OPENBLAS_CORETYPE", std::string(openblas_coretype().value_or(""))},
                          {"FUNCPIPE_UPLINK", "35000000"},
                          {"FUNCPIPE_DOWNLINK", ""},
                          {"FUNCPIPE_LATENCY_NS", "80000000"}}));
}

TEST(LocalHost, EndsIdleProcesses) {
  auto config = testing_config();
  config.idle_timeout = 100ms;
  TestingLocalHost host(config);
  host.call("main", json::object());
  EXPECT_EQ(host.state()["sandboxes"].size(), 1);
  EXPECT_TRUE(host.wait_for_state([](const json& state) { return state["sandboxes"].empty(); }));
}

TEST(LocalHost, InjectsFaults) {
  auto config = testing_config();
  config.faults.throttle_probability = 1;
  TestingLocalHost throttles(config);
  EXPECT_EQ(throttles.invoke("main", json::object()).kind, Kind::kThrottled);
  config.faults = {.kill_probability = 1, .kill_after_min = 50ms, .kill_after_max = 100ms};
  TestingLocalHost kills(config);
  const auto killed = kills.invoke("main", {{"do", "sleep"}, {"ms", 5000}});
  EXPECT_EQ(killed.kind, Kind::kCrashed);
  EXPECT_THAT(killed.error_message, HasSubstr("signal: killed"));
  EXPECT_LT(killed.usage.duration, 1s);
  config.faults = {.duplicate_probability = 1};
  TestingLocalHost doubles(config);
  doubles.call("main", json::object());
  EXPECT_TRUE(doubles.wait_for_state(
      [](const json& state) { return state["functions"]["main"]["invocations"] == 2; }));
}

TEST(LocalHost, SaysWhyItCannotStart) {
  const auto message_of = [](const LocalHostConfig& config) -> std::string {
    try {
      const LocalHostProcess host({FUNCPIPE_TESTING_HOST}, config);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  auto config = testing_config();
  config.command = {"/no/such/worker"};
  EXPECT_THAT(message_of(config), HasSubstr("/no/such/worker"));
  TestingLocalHost running;
  config = testing_config();
  config.port = running.process().port();
  EXPECT_THAT(message_of(config), HasSubstr("cannot listen"));
}

}  // namespace
}  // namespace funcpipe
