#include "data/gzip.h"

#include <gtest/gtest.h>

#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;

std::string random_text(std::size_t size, std::uint64_t letters) {
  Rng rng(size);
  std::string text(size, ' ');
  for (auto& c : text) c = static_cast<char>('a' + rng.below(letters));
  return text;
}

std::string gunzipped(const std::string& file) {
  return std::string(gunzip(as_bytes(file), "f.gz").text());
}

TEST(Gzip, RoundTripOfManySizes) {
  for (const std::size_t size : {0, 1, 2, 63, 4096, 1'000'003}) {
    const auto text = random_text(size, 20);
    EXPECT_EQ(gunzipped(testing::gzip(text)), text) << size;
  }
}

TEST(Gzip, HighlyCompressibleContentGrowsTheBuffer) {
  const std::string zeros(20'000'000, '\0');
  EXPECT_EQ(gunzipped(testing::gzip(zeros)), zeros);
}

TEST(Gzip, MembersAreConcatenated) {
  EXPECT_EQ(gunzipped(testing::gzip("first, ") + testing::gzip("") + testing::gzip("second")),
            "first, second");
}

TEST(Gzip, TruncatedAnywhereIsDataLoss) {
  const auto file = testing::gzip(random_text(3000, 20));
  for (std::size_t size = 2; size < file.size(); size += 7) {
    expect_error(ErrorCode::kDataLoss, {"f.gz", "truncated"},
                 [&] { gunzipped(file.substr(0, size)); });
  }
}

TEST(Gzip, DamageIsDataLoss) {
  auto file = testing::gzip(random_text(3000, 20));
  for (const std::size_t at : {std::size_t{3}, file.size() / 2, file.size() - 6}) {
    auto damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    expect_error(ErrorCode::kDataLoss, {"f.gz"}, [&] { gunzipped(damaged); });
  }
  expect_error(ErrorCode::kDataLoss, {"3 bytes that are not gzip"},
               [&] { gunzipped(file + "xyz"); });
}

}  // namespace
}  // namespace funcpipe
