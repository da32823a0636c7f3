#include "collective/wire.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {
namespace {

Buffer assemble(const EncodedMessage& message) {
  std::size_t size = 0;
  for (const auto part : message.parts) size += part.size();
  Buffer object(size);
  std::size_t at = 0;
  for (const auto part : message.parts) {
    std::memcpy(object.data() + at, part.data(), part.size());
    at += part.size();
  }
  return object;
}

struct Sample {
  TensorBundle bundle;
  std::vector<Buffer> memory;
};

Sample random_sample(std::uint64_t seed) {
  Rng rng(seed);
  Sample sample;
  sample.bundle.is_tuple = rng.below(2) == 1;
  const auto count = rng.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    TensorView tensor;
    tensor.dtype = static_cast<DType>(rng.below(kDTypeCount));
    for (auto d = rng.below(4); d > 0; --d)
      tensor.shape.push_back(static_cast<std::int64_t>(rng.below(6)));
    tensor.requires_grad = rng.below(2) == 1;
    tensor.present = rng.below(5) > 0;
    if (i > 0 && rng.below(4) == 0) tensor.alias_of = static_cast<int>(rng.below(i));
    if (tensor.present && tensor.alias_of < 0) {
      Buffer memory(static_cast<std::size_t>(element_count(tensor.shape)) * size_of(tensor.dtype));
      for (auto& byte : memory.span()) byte = static_cast<std::byte>(rng());
      tensor.data = memory.view();
      sample.memory.push_back(std::move(memory));
    }
    sample.bundle.tensors.push_back(std::move(tensor));
  }
  return sample;
}

TEST(Wire, RoundTripsAnyBundle) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto sample = random_sample(seed);
    const auto decoded = decode(assemble(encode(sample.bundle)));
    ASSERT_EQ(decoded.is_tuple, sample.bundle.is_tuple);
    ASSERT_EQ(decoded.tensors.size(), sample.bundle.tensors.size());
    for (std::size_t i = 0; i < decoded.tensors.size(); ++i) {
      const auto& got = decoded.tensors[i];
      const auto& want = sample.bundle.tensors[i];
      EXPECT_EQ(got.dtype, want.dtype);
      EXPECT_EQ(got.shape, want.shape);
      EXPECT_EQ(got.requires_grad, want.requires_grad);
      EXPECT_EQ(got.present, want.present);
      EXPECT_EQ(got.alias_of, want.alias_of);
      EXPECT_EQ(as_text(got.data), as_text(want.data));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.data.data()) % Buffer::kAlignment *
                    !got.data.empty(),
                0U);
    }
  }
}

TEST(Wire, PayloadIsBorrowedNotCopied) {
  const auto sample = random_sample(3);
  const auto message = encode(sample.bundle);
  for (const auto& tensor : sample.bundle.tensors) {
    if (tensor.data.empty()) continue;
    EXPECT_TRUE(std::any_of(message.parts.begin(), message.parts.end(),
                            [&](ByteView part) { return part.data() == tensor.data.data(); }));
  }
}

TEST(Wire, EveryDamageIsDataLossNeverACrash) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto sample = random_sample(seed);
    const auto object = assemble(encode(sample.bundle));
    Rng rng(seed + 1000);
    for (int round = 0; round < 60; ++round) {
      auto damaged = Buffer::copy_of(object.view());
      if (rng.below(2) == 0) {
        damaged.shrink(rng.below(damaged.size()));
      } else {
        damaged.data()[rng.below(damaged.size())] ^= static_cast<std::byte>(1 + rng.below(255));
      }
      try {
        decode(std::move(damaged));
        ADD_FAILURE() << "damage was not noticed, seed " << seed;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDataLoss) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace funcpipe
