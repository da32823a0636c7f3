#include "base/units.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

template <typename Parse>
std::string message_of(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "'" << text << "' was accepted";
  return {};
}

TEST(UnitsTest, ParsesBytes) {
  EXPECT_EQ(parse_bytes("100"), 100U);
  EXPECT_EQ(parse_bytes("64 MB"), 64'000'000U);
  EXPECT_EQ(parse_bytes("64MB"), 64'000'000U);
  EXPECT_EQ(parse_bytes("  1.5 GiB "), 1'610'612'736U);
  EXPECT_EQ(parse_bytes("2 kB"), 2000U);
  EXPECT_EQ(parse_bytes("2 KiB"), 2048U);
  EXPECT_EQ(parse_bytes("0"), 0U);
}

TEST(UnitsTest, ParsesBandwidths) {
  EXPECT_EQ(parse_bytes_per_second("70 MB/s"), 70e6);
  EXPECT_EQ(parse_bytes_per_second("500 Mbit/s"), 62.5e6);
  EXPECT_EQ(parse_bytes_per_second("1e+20 B/s"), 1e20);
  EXPECT_TRUE(std::isinf(parse_bytes_per_second("inf")));
}

TEST(UnitsTest, ParsesDurations) {
  EXPECT_EQ(parse_duration("40 ms"), 40ms);
  EXPECT_EQ(parse_duration("290 ms"), 290ms);
  EXPECT_EQ(parse_duration("1.5 min"), 90s);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("0"), 0ns);
  EXPECT_EQ(parse_duration("0.1 us"), 100ns);
}

TEST(UnitsTest, NanosecondsAreExact) {
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration duration(static_cast<std::int64_t>(rng.below(std::uint64_t{1} << 53)));
    EXPECT_EQ(parse_duration(fmt::format("{} ns", duration.count())), duration);
  }
}

TEST(UnitsTest, RejectsWhatIsNoAmountOfBytes) {
  for (const auto* text : {"", " ", "MB", "-1 MB", "64 mb", "64 MBs", "0x10", "nan", "inf", "1e400",
                           "1 000", "1,5 MB", "20000000000 GB", "+5"}) {
    EXPECT_THAT(message_of(parse_bytes, text),
                HasSubstr(fmt::format("'{}' is not an amount of bytes", text)));
  }
  EXPECT_THAT(message_of(parse_bytes, "x"), HasSubstr("write for example '64 MB'"));
}

TEST(UnitsTest, RejectsWhatIsNoBandwidth) {
  for (const auto* text : {"70", "70 MB", "0 MB/s", "-inf", "inf MB/s", "70 MBps", "1e300 GB/ s"}) {
    EXPECT_THAT(message_of(parse_bytes_per_second, text), HasSubstr("write for example '70 MB/s'"));
  }
}

TEST(UnitsTest, RejectsWhatIsNoDuration) {
  for (const auto* text : {"40", "40 sec", "-1 s", "1:30", "300 years", "9e12 h", "ms"}) {
    EXPECT_THAT(message_of(parse_duration, text), HasSubstr("write for example '40 ms'"));
  }
}

TEST(UnitsTest, FormatsBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1500), "1.50 kB");
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");
  EXPECT_EQ(format_bytes(64e6), "64.00 MB");
  EXPECT_EQ(format_bytes(3.2e15), "3200.00 TB");
}

TEST(UnitsTest, FormatsDurations) {
  EXPECT_EQ(format_duration(1500ns), "2 us");
  EXPECT_EQ(format_duration(999'900ns), "1.0 ms");
  EXPECT_EQ(format_duration(12'340us), "12.3 ms");
  EXPECT_EQ(format_duration(999'960us), "1.00 s");
  EXPECT_EQ(format_duration(59'996ms), "1 min 00 s");
  EXPECT_EQ(format_duration(185s), "3 min 05 s");
  EXPECT_EQ(format_duration(3600s), "1 h 00 min");
  EXPECT_EQ(format_duration(3h + 25min), "3 h 25 min");
}

TEST(UnitsTest, SecondsRoundToTheNearestNanosecond) {
  EXPECT_EQ(from_seconds(0.29), 290ms);
  EXPECT_EQ(from_seconds(1e-9), 1ns);
  EXPECT_EQ(to_seconds(1500ms), 1.5);
}

}  // namespace
}  // namespace funcpipe
