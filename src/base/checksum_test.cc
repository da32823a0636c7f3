#include "base/checksum.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace funcpipe {
namespace {

Buffer random_bytes(std::size_t size, Rng& rng) {
  Buffer buffer(size);
  for (auto& byte : buffer.span()) byte = static_cast<std::byte>(rng());
  return buffer;
}

TEST(ChecksumTest, KnownValues) {
  EXPECT_EQ(to_hex(checksum(ByteView())), "2d06800538d394c2");  // XXH3_64bits of nothing
  EXPECT_EQ(to_hex(checksum(as_bytes("a"))), "e6c632b61e964e1f");
}

TEST(ChecksumTest, PartsCountAsOneRunOfBytes) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const auto whole = random_bytes(rng.below(2000), rng);
    std::vector<ByteView> parts;
    for (auto rest = whole.view(); !rest.empty();) {
      const auto size = rng.below(rest.size() + 1);  // empty parts too
      parts.push_back(rest.first(size));
      rest = rest.subspan(size);
    }
    EXPECT_EQ(checksum(parts), checksum(whole.view()));
  }
  EXPECT_EQ(checksum(std::span<const ByteView>()), checksum(ByteView()));
}

TEST(ChecksumTest, EveryBitCounts) {
  Rng rng(8);
  const auto bytes = random_bytes(300, rng);
  const auto sum = checksum(bytes.view());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto damaged = Buffer::copy_of(bytes.view());
    damaged.data()[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_NE(checksum(damaged.view()), sum);
  }
}

TEST(ChecksumTest, HexHasSixteenDigits) { EXPECT_EQ(to_hex(0xab), "00000000000000ab"); }

TEST(BufferTest, IsAlignedMovedAndShrunk) {
  auto buffer = Buffer::copy_of(as_bytes("hello"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % Buffer::kAlignment, 0U);
  const auto* const data = buffer.data();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  moved.shrink(4);
  moved.shrink(9);
  EXPECT_EQ(moved.text(), "hell");
  moved = Buffer();
  EXPECT_TRUE(moved.empty());
  EXPECT_TRUE(Buffer::copy_of({}).empty());
}

}  // namespace
}  // namespace funcpipe
