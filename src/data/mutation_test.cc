// Damaged files of every format: an Error or an array that is consistent, never a crash.
#include <gtest/gtest.h>

#include "data/array_file.h"
#include "data/safetensors.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

std::string safetensors_file(Rng& rng) {
  const auto x = testing::random_array(rng, DType::kFloat32, {3, 4});
  const auto y = testing::random_array(rng, DType::kUInt8, {5});
  std::string text;
  for (const auto part :
       write_safetensors(std::vector<NamedTensor>{{"input", x.view}, {"y", y.view}}).parts) {
    text += as_text(part);
  }
  return text;
}

std::string npy_file() {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         std::string(24, 'x');
}

void mutate(Rng& rng, std::string& file) {
  for (std::uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
    const auto at = rng.below(file.size());
    switch (rng.below(4)) {
      case 0:
        file.resize(at + 1);
        break;
      case 1:
        file.insert(at, 1, static_cast<char>(rng.below(256)));
        break;
      case 2:
        file[at] = static_cast<char>(file[at] ^ 1 << rng.below(8));
        break;
      default:
        file[at] = static_cast<char>(rng.below(256));
    }
  }
}

TEST(Mutation, DamagedFilesAreErrorsOrConsistentArrays) {
  Rng rng(99);
  const auto idx = testing::idx_file(0x0B, {4, 2}, "0123456789abcdef");
  const std::vector<std::string> sound = {idx, npy_file(), safetensors_file(rng),
                                          testing::gzip(idx), testing::gzip(npy_file())};
  int parsed = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto file = sound[static_cast<std::size_t>(round) % sound.size()];
    mutate(rng, file);
    try {
      const auto array = parse_array(testing::to_buffer(file), "f", "input").array;
      EXPECT_EQ(byte_size(array.view.dtype, array.view.shape), array.view.data.size());
      ++parsed;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kDataLoss ||
                  error.code() == ErrorCode::kInvalidArgument ||
                  error.code() == ErrorCode::kNotFound)
          << error.what();
    }
  }
  EXPECT_GT(parsed, 100) << "flips in the data alone pass";
}

}  // namespace
}  // namespace funcpipe
