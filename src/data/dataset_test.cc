#include "data/dataset.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "core/batching.h"
#include "data/dataset_writer.h"
#include "data/recording_store.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::random_array;
using testing::RecordingStore;
using Records = std::vector<std::uint32_t>;

// Reads until `done` or ten seconds have passed.
bool eventually(const std::function<bool()>& done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < until) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// What the arrays hold for these records.
std::string gathered(const TensorView& column, const Records& records) {
  const auto row = column.data.size() / static_cast<std::size_t>(column.shape[0]);
  std::string bytes;
  for (const auto record : records) bytes += as_text(column.data.subspan(record * row, row));
  return bytes;
}

std::string bytes_of(const TensorBundle& bundle) {
  return std::string(as_text(bundle.tensors.at(0).data));
}

Records random_records(Rng& rng, std::int64_t count, std::size_t size) {
  Records records(size);
  for (auto& record : records) {
    record = static_cast<std::uint32_t>(rng.below(static_cast<std::uint64_t>(count)));
  }
  return records;
}

// 100 records of 1000 bytes with scalar targets, ten in a shard.
class DatasetReading : public ::testing::Test {
 protected:
  DatasetReading() {
    write_dataset(store_, "d", images_.view, labels_.view, {.name = "d", .shard_bytes = 10 * 1001});
    store_.take_log();
  }
  std::size_t requests() { return store_.take_log().size(); }
  // A dataset whose inputs are never kept, and whose merging of neighbours stays within reason.
  Dataset uncached() { return Dataset(store_, "d", {.cache_bytes = 100, .parallel_requests = 3}); }
  void damage(const std::string& shard, const std::function<void(std::string&)>& change) {
    const auto key = store_.key_with(shard);
    auto content = store_.object(key);
    change(content);
    store_.set_object(key, content);
  }

  Rng rng_{11};
  RecordingStore store_;
  Array images_ = random_array(rng_, DType::kUInt8, {100, 10, 100});
  Array labels_ = random_array(rng_, DType::kUInt8, {100});
};

TEST_F(DatasetReading, OpeningReadsTheIndexOnly) {
  const Dataset dataset(store_, "d");
  EXPECT_THAT(store_.take_log(), ::testing::ElementsAre("get d/index.json"));
  EXPECT_EQ(dataset.records(), 100);
  EXPECT_EQ(dataset.input().shape, (Shape{10, 100}));
  EXPECT_EQ(dataset.target().dtype, DType::kUInt8);
}

TEST_F(DatasetReading, RecordsComeInTheOrderAskedForAlsoTwice) {
  Dataset dataset(store_, "d");
  const Records records = {99, 0, 55, 55, 12};
  const auto bundle = dataset.read_inputs(records);
  EXPECT_EQ(bundle.tensors.at(0).shape, (Shape{5, 10, 100}));
  EXPECT_EQ(bytes_of(bundle), gathered(images_.view, records));
  EXPECT_EQ(bytes_of(dataset.read_targets(records)), gathered(labels_.view, records));
  EXPECT_EQ(dataset.read_inputs(Records{}).tensors.at(0).shape, (Shape{0, 10, 100}));
}

TEST_F(DatasetReading, ARecordThatDoesNotExistIsNamed) {
  Dataset dataset(store_, "d");
  expect_error(ErrorCode::kInvalidArgument, {"record 100", "has 100"}, [&] {
    dataset.read_inputs(Records{3, 100});
  });
}

TEST_F(DatasetReading, TheFirstReadFetchesOnlyWhatItNeeds) {
  Dataset dataset(store_, "d", {.parallel_requests = 1});
  store_.take_log();
  dataset.read_inputs(Records{5});
  const auto key = store_.key_with("shard-00000");
  const auto offset = dataset.index().shards[0].input.offset + 5 * 1000;
  EXPECT_EQ(store_.take_log().at(0), fmt::format("get_range {} {}+1000", key, offset));
}

TEST_F(DatasetReading, AKeptColumnIsFetchedInTheBackgroundOnce) {
  Dataset dataset(store_, "d");
  store_.take_log();
  dataset.read_inputs(Records{5});
  std::size_t whole = 0;
  ASSERT_TRUE(eventually([&] {
    for (const auto& entry : store_.take_log()) whole += entry.ends_with("+10000");
    return whole == 10;
  }));
  ASSERT_TRUE(eventually([&] {
    dataset.read_inputs(random_records(rng_, 100, 30));
    return requests() == 0;
  }));
  const auto all = epoch_order(100, 0, 1, true);
  EXPECT_EQ(bytes_of(dataset.read_inputs(all)), gathered(images_.view, all));
  EXPECT_EQ(requests(), 0U);
}

TEST_F(DatasetReading, ShardsNeededForTheMostPartAreFetchedWholeAtOnce) {
  Dataset dataset(store_, "d");
  store_.take_log();
  const auto all = epoch_order(100, 0, 0, false);
  dataset.read_targets(all);
  EXPECT_EQ(requests(), 10U);
  dataset.read_targets(all);
  EXPECT_EQ(requests(), 0U) << "kept";
}

TEST_F(DatasetReading, AColumnThatDoesNotFitIsReadByMergedRanges) {
  auto dataset = uncached();
  store_.take_log();
  const Records records = {20, 21, 22, 45, 46, 99};
  EXPECT_EQ(bytes_of(dataset.read_inputs(records)), gathered(images_.view, records));
  EXPECT_EQ(requests(), 3U);
  EXPECT_EQ(bytes_of(dataset.read_inputs(records)), gathered(images_.view, records));
  EXPECT_EQ(requests(), 3U) << "read again, and nothing in the background";
}

TEST_F(DatasetReading, ConcurrentReadersSeeTheRightRecords) {
  for (const std::uint64_t cache_bytes : {std::uint64_t{100}, std::uint64_t{1} << 20}) {
    Dataset dataset(store_, "d", {.cache_bytes = cache_bytes});
    std::vector<std::jthread> readers;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      readers.emplace_back([&, seed] {
        Rng rng(seed);
        for (int round = 0; round < 50; ++round) {
          const auto records = random_records(rng, 100, 8);
          EXPECT_EQ(bytes_of(dataset.read_inputs(records)), gathered(images_.view, records));
          EXPECT_EQ(bytes_of(dataset.read_targets(records)), gathered(labels_.view, records));
        }
      });
    }
  }
}

TEST_F(DatasetReading, AnyDatasetReadsAsItsArrays) {
  for (int round = 0; round < 60; ++round) {
    const auto count = static_cast<std::int64_t>(1 + rng_.below(200));
    Shape shape = {count};
    for (std::uint64_t d = rng_.below(3); d > 0; --d) {
      shape.push_back(static_cast<std::int64_t>(1 + rng_.below(5)));
    }
    const auto inputs = random_array(rng_, static_cast<DType>(rng_.below(kDTypeCount)), shape);
    const auto targets = random_array(rng_, DType::kFloat16, {count, 2});
    RecordingStore store;
    write_dataset(store, "r", inputs.view, targets.view,
                  {.name = "r", .shard_bytes = 1 + rng_.below(2000)});
    Dataset dataset(store, "r", {.cache_bytes = rng_.below(8000), .parallel_requests = 2});
    for (int read = 0; read < 4; ++read) {
      const auto records = random_records(rng_, count, rng_.below(40));
      EXPECT_EQ(bytes_of(dataset.read_inputs(records)), gathered(inputs.view, records));
      EXPECT_EQ(bytes_of(dataset.read_targets(records)), gathered(targets.view, records));
    }
  }
}

TEST_F(DatasetReading, AMissingShardIsDataLoss) {
  auto dataset = uncached();
  const auto key = store_.key_with("shard-00003");
  store_.remove(key);
  EXPECT_NO_THROW(dataset.read_inputs(Records{29, 40}));
  expect_error(ErrorCode::kDataLoss, {key, "missing"}, [&] { dataset.read_inputs(Records{30}); });
  expect_error(ErrorCode::kDataLoss, {key, "missing"},
               [&] { verify_dataset(store_, "d", dataset.index()); });
}

TEST_F(DatasetReading, ATruncatedShardIsDataLoss) {
  auto dataset = uncached();
  damage("shard-00003", [](std::string& content) { content.resize(content.size() - 9000); });
  expect_error(ErrorCode::kDataLoss, {"shard-00003", "truncated"},
               [&] { dataset.read_inputs(Records{39}); });
}

TEST_F(DatasetReading, DamageIsFoundByWholeReads) {
  Dataset dataset(store_, "d");
  damage("shard-00003",
         [](std::string& content) { content.back() = static_cast<char>(content.back() + 1); });
  const auto all = epoch_order(100, 0, 0, false);
  expect_error(ErrorCode::kDataLoss, {"shard-00003", "checksum"},
               [&] { dataset.read_targets(all); });
  expect_error(ErrorCode::kDataLoss, {"shard-00003", "checksum"},
               [&] { verify_dataset(store_, "d", dataset.index()); });
  EXPECT_NO_THROW(dataset.read_inputs(all)) << "the other column is sound";
}

TEST_F(DatasetReading, DamageFoundInTheBackgroundReachesTheNextReader) {
  Dataset dataset(store_, "d");
  damage("shard-00003", [](std::string& content) { content[content.size() - 1000] ^= 1; });
  dataset.read_inputs(Records{5});
  EXPECT_TRUE(eventually([&] {
    try {
      dataset.read_inputs(Records{5});
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::kDataLoss;
    }
  }));
}

TEST_F(DatasetReading, NoDatasetNamesThoseNearby) {
  expect_error(ErrorCode::kNotFound, {"'index.json'", "datasets at: d"},
               [&] { Dataset(store_, ""); });
  expect_error(ErrorCode::kNotFound, {"'e/index.json'", "data import"},
               [&] { Dataset(store_, "e"); });
}

TEST_F(DatasetReading, ABrokenIndexIsAnErrorWithFileLineAndKey) {
  const auto sound = nlohmann::json::parse(store_.object("d/index.json"));
  const auto expect_rejected = [&](const char* pointer, const nlohmann::json& value,
                                   const std::vector<std::string>& words) {
    auto json = sound;
    json[nlohmann::json::json_pointer(pointer)] = value;
    store_.set_object("d/index.json", json.dump(1));
    expect_error(ErrorCode::kInvalidArgument, words, [&] { Dataset(store_, "d"); });
  };
  expect_rejected("/funcpipe_dataset", 2, {"d/index.json:", "version 2", "reads version 1"});
  expect_rejected("/recrods", 1, {"recrods", "did you mean 'records'"});
  expect_rejected("/records", 99, {"records", "99", "100"});
  expect_rejected("/records", 0, {"at least 1"});
  expect_rejected("/input/dtype", "float31", {"input.dtype", "float31"});
  expect_rejected("/input/shape", {0}, {"input", "[0]"});
  expect_rejected("/input/shape", {10, 200}, {"shards[0]", "do not fit"});
  expect_rejected("/shards/1/input/offset", 9999999, {"shards[1]", "do not fit"});
  expect_rejected("/shards/1/checksum", "xyz", {"shards[1].checksum", "16 hexadecimal digits"});
  store_.set_object("d/index.json", "{\"funcpipe_dataset\": 1,");
  expect_error(ErrorCode::kInvalidArgument, {"d/index.json"}, [&] { Dataset(store_, "d"); });
}

}  // namespace
}  // namespace funcpipe
