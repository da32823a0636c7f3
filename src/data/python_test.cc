// Python reads the datasets we write and repeats the data order of a job.
#include <gtest/gtest.h>

#include "base/file.h"
#include "core/batching.h"
#include "data/dataset_writer.h"
#include "data/test_support.h"
#include "store/directory_store.h"

namespace funcpipe {
namespace {

TEST(Python, EpochOrderAndDropoutSeedsAreTheSame) {
  std::string script = "from dataset import epoch_order, dropout_seed\n";
  std::string expected;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
    for (const std::int64_t epoch : {0, 1, 1000}) {
      for (const std::uint32_t samples : {1U, 2U, 1000U}) {
        script += fmt::format("print(*epoch_order({}, {}, {}))\n", samples, epoch, seed);
        for (const auto record : epoch_order(samples, epoch, seed, true)) {
          expected += std::to_string(record) + " ";
        }
        expected.back() = '\n';
      }
      script += fmt::format("print(dropout_seed({}, {}, 3, 17))\n", seed, epoch);
      expected += std::to_string(dropout_seed(seed, epoch, 3, 17)) + "\n";
    }
  }
  EXPECT_EQ(testing::run_python(script + "print(*epoch_order(4, 9, 9, shuffle=False))\n"),
            expected + "0 1 2 3\n");
}

TEST(Python, DatasetsOfEveryTypeAreReadAlike) {
  Rng rng(3);
  const TemporaryDirectory folder;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kBFloat16) continue;
    const auto inputs = testing::random_array(rng, dtype, {23, 2, 3});
    const auto targets = testing::random_array(rng, DType::kUInt8, {23});
    const auto path = folder.path() / std::string(to_string(dtype));
    DirectoryStore store(path);
    write_dataset(store, "d", inputs.view, targets.view, {.name = "d", .shard_bytes = 200});
    write_file(path / "inputs", inputs.view.data);
    write_file(path / "targets", targets.view.data);
  }
  EXPECT_EQ(testing::run_python(R"(
import os, sys
from dataset import Dataset
for name in sorted(os.listdir(sys.argv[1])):
    path = os.path.join(sys.argv[1], name)
    data = Dataset(os.path.join(path, "d"))
    assert len(data) == 23 and data.inputs.shape == (23, 2, 3) and data.targets.shape == (23,)
    assert data.inputs.tobytes() == open(os.path.join(path, "inputs"), "rb").read()
    assert data.targets.tobytes() == open(os.path.join(path, "targets"), "rb").read()
    print(data.inputs.dtype, data.classes == data.targets.max() + 1)
)",
                                {folder.path().string()}),
            "bool True\nfloat16 True\nfloat32 True\nfloat64 True\nint16 True\nint32 True\nint64 "
            "True\nint8 True\nuint8 True\n");
}

TEST(Python, WhatIsNoDatasetRaisesValueErrorWithTheFile) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "index.json", std::string_view(R"({"funcpipe_dataset": 7})"));
  EXPECT_EQ(testing::run_python(R"(
import sys
from dataset import Dataset
try:
    Dataset(sys.argv[1])
except ValueError as error:
    print(error)
)",
                                {folder.path().string()}),
            fmt::format("{}: funcpipe_dataset is 7, expected 1\n",
                        (folder.path() / "index.json").string()));
}

}  // namespace
}  // namespace funcpipe
