#include "data/idx.h"

#include <gtest/gtest.h>

#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::idx_file;
using testing::to_buffer;

template <typename T>
std::vector<T> values(const Array& array) {
  std::vector<T> result(array.view.data.size() / sizeof(T));
  std::memcpy(result.data(), array.view.data.data(), array.view.data.size());
  return result;
}

Array parse(const std::string& file) { return parse_idx(to_buffer(file), "f.idx"); }

TEST(Idx, BytesKeepTheirShapeAndOrder) {
  const auto array = parse(idx_file(0x08, {2, 1, 3}, "abcdef"));
  EXPECT_EQ(array.view.dtype, DType::kUInt8);
  EXPECT_EQ(array.view.shape, (Shape{2, 1, 3}));
  EXPECT_EQ(as_text(array.view.data), "abcdef");
}

TEST(Idx, EveryTypeIsTurnedIntoLittleEndian) {
  using namespace std::string_literals;
  EXPECT_EQ(values<std::int8_t>(parse(idx_file(0x09, {2}, "\x01\xff"))),
            (std::vector<std::int8_t>{1, -1}));
  EXPECT_EQ(values<std::int16_t>(parse(idx_file(0x0B, {2}, "\x01\x02\xff\xfe"))),
            (std::vector<std::int16_t>{0x0102, -2}));
  EXPECT_EQ(values<std::int32_t>(parse(idx_file(0x0C, {1}, "\x00\x01\x02\x03"s))),
            (std::vector<std::int32_t>{0x00010203}));
  EXPECT_EQ(values<float>(parse(idx_file(0x0D, {1}, "\x3f\xc0\x00\x00"s))),
            (std::vector<float>{1.5F}));
  EXPECT_EQ(values<double>(parse(idx_file(0x0E, {1}, "\xc0\x04\x00\x00\x00\x00\x00\x00"s))),
            (std::vector<double>{-2.5}));
}

TEST(Idx, EveryTruncationAndAnyExcessIsDataLossWithBothSizes) {
  const auto file = idx_file(0x08, {3, 2, 2}, "0123456789ab");
  for (std::size_t size = 0; size < file.size(); ++size) {
    expect_error(ErrorCode::kDataLoss, {"f.idx"}, [&] { parse(file.substr(0, size)); });
  }
  expect_error(ErrorCode::kDataLoss, {"truncated", "[3, 2, 2]", "12 bytes", "has 11"},
               [&] { parse(file.substr(0, file.size() - 1)); });
  expect_error(ErrorCode::kDataLoss, {"too long", "12 bytes", "has 13"},
               [&] { parse(file + "x"); });
}

TEST(Idx, BadMagicNamesWhatWasFound) {
  expect_error(ErrorCode::kInvalidArgument, {"f.idx", "50 4b 03 04"},
               [] { parse("PK\x03\x04 and so on"); });
  expect_error(ErrorCode::kInvalidArgument, {"00 00 0a 01"},
               [] { parse(idx_file(0x0A, {1}, "x")); });
}

TEST(Idx, SizesThatOverflowAreRejected) {
  expect_error(ErrorCode::kDataLoss, {"truncated"}, [] {
    parse(idx_file(0x0E, {0xffffffffU, 0xffffffffU, 0xffffffffU}, "12345678"));
  });
}

}  // namespace
}  // namespace funcpipe
