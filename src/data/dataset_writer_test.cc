#include "data/dataset_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/recording_store.h"
#include "data/safetensors.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::random_array;
using testing::RecordingStore;

template <typename T>
TensorView scalars(DType dtype, const std::vector<T>& values) {
  TensorView view;
  view.dtype = dtype;
  view.shape = {static_cast<std::int64_t>(values.size())};
  view.data = std::as_bytes(std::span(values));
  return view;
}

class DatasetWriter : public ::testing::Test {
 protected:
  Rng rng_{7};
  RecordingStore store_;
  Array images_ = random_array(rng_, DType::kUInt8, {10, 1, 2, 2});
  std::vector<std::int32_t> labels_ = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
  TensorView targets_ = scalars(DType::kInt32, labels_);
};

TEST_F(DatasetWriter, ShardsAreSafetensorsAndTheIndexComesLast) {
  const auto index = write_dataset(store_, "a/train", images_.view, targets_,
                                   {.name = "digits", .shard_bytes = 4 * (4 + 4)});
  EXPECT_EQ(index.records, 10);
  EXPECT_EQ(index.classes, 5);
  EXPECT_EQ(index.input.shape, (Shape{1, 2, 2}));
  EXPECT_EQ(index.target.shape, Shape{});
  ASSERT_EQ(index.shards.size(), 3U);
  EXPECT_EQ(index.shards[2].records, 2) << "the short end is not dropped";
  const auto log = store_.take_log();
  EXPECT_EQ(log.back(), "put a/train/index.json");

  const auto shard = parse_safetensors(*store_.get(dataset_key("a/train", index.shards[1].key)),
                                       index.shards[1].key);
  ASSERT_EQ(shard.tensors.size(), 2U);
  EXPECT_EQ(shard.tensors[0].name, "input");
  EXPECT_EQ(as_text(shard.tensors[0].tensor.data), as_text(images_.view.data.subspan(16, 16)));
  EXPECT_EQ(shard.tensors[1].tensor.shape, Shape{4});
}

TEST_F(DatasetWriter, AWrittenIndexReadsBackEqual) {
  const auto index = write_dataset(store_, "", images_.view, targets_, {.name = "d", .classes = 9});
  const auto read = read_dataset_index(store_, "");
  EXPECT_EQ(read.to_json(), index.to_json());
  EXPECT_EQ(read.classes, 9);
  EXPECT_NO_THROW(verify_dataset(store_, "", read));
}

TEST_F(DatasetWriter, ARecordLargerThanAShardGetsItsOwn) {
  const auto index =
      write_dataset(store_, "d", images_.view, targets_, {.name = "d", .shard_bytes = 1});
  EXPECT_EQ(index.shards.size(), 10U);
}

TEST_F(DatasetWriter, LabelsOutOfRangeNameRecordAndValue) {
  const auto write = [&](const TensorView& targets, std::optional<std::int64_t> classes) {
    write_dataset(store_, "d", images_.view, targets, {.name = "d", .classes = classes});
  };
  expect_error(ErrorCode::kInvalidArgument, {"record 4", "label 4", "0 to 3"},
               [&] { write(targets_, 4); });
  labels_[7] = -3;
  expect_error(ErrorCode::kInvalidArgument, {"record 7", "label -3", "0 or more"},
               [&] { write(targets_, {}); });
  const std::vector<float> floats(10, -1.5F);
  expect_error(ErrorCode::kInvalidArgument, {"classes", "float32"},
               [&] { write(scalars(DType::kFloat32, floats), 4); });
  EXPECT_TRUE(store_.keys().empty()) << "nothing is written before the check";
}

TEST_F(DatasetWriter, FloatTargetsAreRegressionTargets) {
  const std::vector<float> floats(10, -1.5F);
  EXPECT_EQ(
      write_dataset(store_, "d", images_.view, scalars(DType::kFloat32, floats), {.name = "d"})
          .classes,
      0);
}

TEST_F(DatasetWriter, ArraysThatDoNotFitAreRejected) {
  const auto write = [&](const TensorView& inputs, const TensorView& targets) {
    write_dataset(store_, "d", inputs, targets, {.name = "d"});
  };
  const auto nine = random_array(rng_, DType::kUInt8, {9});
  const auto none = random_array(rng_, DType::kUInt8, {0, 3});
  const auto scalar = random_array(rng_, DType::kUInt8, {});
  const auto empty = random_array(rng_, DType::kUInt8, {9, 0});
  expect_error(ErrorCode::kInvalidArgument, {"10 inputs but 9 targets"},
               [&] { write(images_.view, nine.view); });
  expect_error(ErrorCode::kInvalidArgument, {"0 records"}, [&] { write(none.view, none.view); });
  expect_error(ErrorCode::kInvalidArgument, {"scalar"}, [&] { write(scalar.view, nine.view); });
  expect_error(ErrorCode::kInvalidArgument, {"[9, 0]"}, [&] { write(empty.view, nine.view); });
}

TEST_F(DatasetWriter, RepeatingAnImportChangesNothing) {
  write_dataset(store_, "d", images_.view, targets_, {.name = "d"});
  const auto keys = store_.keys();
  write_dataset(store_, "d", images_.view, targets_, {.name = "d"});
  EXPECT_EQ(store_.keys(), keys);
}

TEST_F(DatasetWriter, ADifferentDatasetIsReplacedOnlyOnRequest) {
  const auto old = write_dataset(store_, "d", images_.view, targets_, {.name = "d"});
  const auto other = random_array(rng_, DType::kUInt8, {10, 3});
  expect_error(ErrorCode::kAlreadyExists, {"d/index.json"},
               [&] { write_dataset(store_, "d", other.view, targets_, {.name = "d"}); });
  EXPECT_NO_THROW(verify_dataset(store_, "d", old)) << "the old one is whole";

  const auto made =
      write_dataset(store_, "d", other.view, targets_, {.name = "d", .replace = true});
  EXPECT_NO_THROW(verify_dataset(store_, "d", made));
  EXPECT_EQ(store_.keys().size(), 1 + made.shards.size()) << "no stale shards";
}

TEST_F(DatasetWriter, WhatIsNotOfTheOldDatasetIsLeftAlone) {
  write_dataset(store_, "d", images_.view, targets_, {.name = "d"});
  write_dataset(store_, "d2", images_.view, targets_, {.name = "d2"});
  store_.set_object("d/shard-1.safetensors", "mine");
  const auto other = random_array(rng_, DType::kUInt8, {10, 3});
  write_dataset(store_, "d", other.view, targets_, {.name = "d", .replace = true});
  EXPECT_NO_THROW(verify_dataset(store_, "d2", read_dataset_index(store_, "d2")));
  EXPECT_THAT(store_.keys(), ::testing::Contains("d/shard-1.safetensors"));
}

TEST_F(DatasetWriter, ABrokenIndexCanBeReplaced) {
  store_.set_object("d/index.json", "{broken");
  const auto write = [&](bool replace) {
    return write_dataset(store_, "d", images_.view, targets_, {.name = "d", .replace = replace});
  };
  expect_error(ErrorCode::kAlreadyExists, {"d/index.json"}, [&] { write(false); });
  const auto made = write(true);
  EXPECT_NO_THROW(verify_dataset(store_, "d", made));
}

}  // namespace
}  // namespace funcpipe
