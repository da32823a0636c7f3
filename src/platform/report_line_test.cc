#include "platform/report_line.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

TEST(ReportLine, ReadsWhatLambdaWrites) {
  const auto usage = parse_report(
      "START RequestId: 8f5 Version: $LATEST\nhello\nEND RequestId: 8f5\n"
      "REPORT RequestId: 8f5\tDuration: 1500.25 ms\tBilled Duration: 1721 ms\tMemory Size: 1769 "
      "MB\t"
      "Max Memory Used: 512 MB\tInit Duration: 220.50 ms\t\n");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->duration, 1500250us);
  EXPECT_EQ(usage->billed, 1721ms);
  EXPECT_EQ(usage->initialisation, 220500us);
  EXPECT_TRUE(usage->cold_start);
  EXPECT_EQ(usage->memory_mb, 1769);
  EXPECT_EQ(usage->max_memory_used_mb, 512);
}

TEST(ReportLine, TakesTheLastOneAndIgnoresOthers) {
  EXPECT_FALSE(parse_report("no report here"));
  const auto usage = parse_report(
      "REPORT RequestId: a\tDuration: 1.00 ms\t\nREPORT RequestId: b\tDuration: 2.00 ms\t\n");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->duration, 2ms);
  EXPECT_FALSE(usage->cold_start);
}

TEST(ReportLine, SurvivesTheWayThroughText) {
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    Usage usage;
    usage.duration = std::chrono::microseconds(rng.below(900'000'000) / 10 * 10);
    usage.cold_start = rng.below(2) == 1;
    if (usage.cold_start) usage.initialisation = std::chrono::microseconds(rng.below(10'000) * 10);
    usage.billed = billed_duration(usage.initialisation, usage.duration);
    usage.memory_mb = static_cast<int>(128 + rng.below(10'000));
    usage.max_memory_used_mb = static_cast<int>(rng.below(10'000));
    const auto read = parse_report(format_report("id", usage));
    ASSERT_TRUE(read);
    EXPECT_LT(std::abs((read->duration - usage.duration).count()), 1000);
    EXPECT_LT(std::abs((read->initialisation - usage.initialisation).count()), 1000);
    EXPECT_EQ(read->billed, usage.billed);
    EXPECT_EQ(read->cold_start, usage.cold_start);
    EXPECT_EQ(read->memory_mb, usage.memory_mb);
    EXPECT_EQ(read->max_memory_used_mb, usage.max_memory_used_mb);
  }
}

TEST(ReportLine, BillsEveryBegunMillisecond) {
  EXPECT_EQ(billed_duration(0ms, 0ms), 0ms);
  EXPECT_EQ(billed_duration(0ms, 1ns), 1ms);
  EXPECT_EQ(billed_duration(400us, 600us), 1ms);
  EXPECT_EQ(billed_duration(400us, 601us), 2ms);
}

}  // namespace
}  // namespace funcpipe
