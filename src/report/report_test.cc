#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/chrome_trace.h"
#include "report/cost.h"

namespace funcpipe {
namespace {

TEST(ChromeTrace, OneProcessAWorkerOneRowALane) {
  const std::vector<WorkerTrace> traces = {
      {{1, 0}, 0, {{1, "send gradient 0", 4, 3'000'000, 5'000'000}}},
      {{0, 0}, 0, {{0, "forward 0", 4, 1'000'000, 2'000'000}}},
      {{0, 0}, 1, {{0, "forward 0", 5, 9'000'000, 9'500'000}}},
  };
  const auto events = nlohmann::json::parse(chrome_trace(traces, 2.0));
  std::vector<nlohmann::json> spans;
  std::map<int, std::string> names;
  for (const auto& event : events) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["name"] == "process_name") names[event["pid"]] = event["args"]["name"];
  }
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(names[spans[0]["pid"]], "worker 1.0");
  EXPECT_EQ(names[spans[1]["pid"]], "worker 0.0");
  EXPECT_EQ(spans[1]["pid"], spans[2]["pid"]);
  EXPECT_DOUBLE_EQ(spans[0]["ts"], 1000.0);  // 2 ms after the first event, dilated twofold
  EXPECT_DOUBLE_EQ(spans[0]["dur"], 1000.0);
  EXPECT_EQ(spans[0]["tid"], 1);
  EXPECT_EQ(spans[2]["args"]["attempt"], 1);
}

TEST(ChromeTrace, NoEventsIsAnEmptyTrace) {
  EXPECT_TRUE(nlohmann::json::parse(chrome_trace({}, 1)).empty());
}

TEST(Cost, FollowsThePriceList) {
  WorkerAccount account;
  account.memory_mb = 2048;
  account.invocations = 2;
  account.billed = std::chrono::milliseconds(1500);
  account.usage.puts = 1000;
  account.usage.gets = 5000;
  const auto cost = cost_of(account, aws_lambda_spec());
  EXPECT_DOUBLE_EQ(cost.gb_seconds, 3.0);
  EXPECT_NEAR(cost.compute_usd, 3 * 1.66667e-5, 1e-12);
  EXPECT_NEAR(cost.requests_usd, 4e-7, 1e-15);
  EXPECT_NEAR(cost.storage_usd, 0.005 + 0.002, 1e-12);
}

TEST(Cost, ReportAddsUp) {
  WorkerAccount account;
  account.memory_mb = 1024;
  account.billed = std::chrono::seconds(10);
  account.usage.puts = 3;
  StoreUsage client;
  client.puts = 4;
  const auto report = cost_report({account, account}, client, aws_lambda_spec());
  EXPECT_EQ(report["store"]["puts"], 10);
  EXPECT_DOUBLE_EQ(report["total"]["gb_seconds"], 20.0);
  double sum = report["client"]["cost"]["total_usd"];
  for (const auto& worker : report["workers"]) sum += worker["cost"]["total_usd"].get<double>();
  EXPECT_NEAR(report["total"]["total_usd"], sum, 1e-15);
}

}  // namespace
}  // namespace funcpipe
