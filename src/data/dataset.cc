#include "data/dataset.h"

#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/checksum.h"
#include "base/config.h"
#include "base/error.h"

namespace funcpipe {
namespace {

std::vector<ColumnShard> column_shards(const DatasetIndex& index, std::string_view prefix,
                                       ColumnExtent ShardFacts::*column) {
  std::vector<ColumnShard> shards;
  std::int64_t first = 0;
  for (const auto& shard : index.shards) {
    const auto& extent = shard.*column;
    shards.push_back(
        {dataset_key(prefix, shard.key), extent.offset, first, shard.records, extent.checksum});
    first += shard.records;
  }
  return shards;
}

// Prefixes under `prefix` that hold a dataset.
std::vector<std::string> datasets_below(ObjectStore& store, std::string_view prefix) {
  std::vector<std::string> found;
  const auto suffix = fmt::format("/{}", DatasetIndex::kFileName);
  const auto below = prefix.empty() ? std::string() : fmt::format("{}/", prefix);
  for (const auto& object : list_all(store, below)) {
    if (!object.key.ends_with(suffix)) continue;
    found.push_back(object.key.substr(0, object.key.size() - suffix.size()));
  }
  return found;
}

[[noreturn]] void fail_not_a_dataset(ObjectStore& store, std::string_view prefix,
                                     const std::string& key) {
  const auto found = datasets_below(store, prefix);
  const auto hint = found.empty()
                        ? "import one with 'funcpipe data import'"
                        : fmt::format("there are datasets at: {}", fmt::join(found, ", "));
  fail(ErrorCode::kNotFound, "no dataset here: the store has no '{}'; {}", key, hint);
}

}  // namespace

DatasetIndex read_dataset_index(ObjectStore& store, std::string_view prefix) {
  const auto key = dataset_key(prefix, DatasetIndex::kFileName);
  const auto text = store.get(key);
  if (!text) fail_not_a_dataset(store, prefix, key);
  return DatasetIndex::from_config(ConfigNode::from_text(text->text(), key));
}

Dataset::Dataset(ObjectStore& store, std::string_view prefix, const DatasetOptions& options)
    : index_(read_dataset_index(store, prefix)) {
  auto cache_left = options.cache_bytes;
  const auto make_column = [&](const TensorFacts& facts, ColumnExtent ShardFacts::*column) {
    const auto bytes = static_cast<std::uint64_t>(records()) * record_bytes(facts);
    const bool keep = bytes <= cache_left;
    if (keep) cache_left -= bytes;
    return std::make_unique<DatasetColumn>(
        store, facts, column_shards(index_, prefix, column),
        ColumnOptions{.keep = keep, .parallel_requests = options.parallel_requests});
  };
  targets_ = make_column(index_.target, &ShardFacts::target);
  inputs_ = make_column(index_.input, &ShardFacts::input);
}

TensorBundle Dataset::read_inputs(std::span<const std::uint32_t> records) {
  return inputs_->read(records);
}

TensorBundle Dataset::read_targets(std::span<const std::uint32_t> records) {
  return targets_->read(records);
}

void verify_dataset(ObjectStore& store, std::string_view prefix, const DatasetIndex& index) {
  for (const auto& shard : index.shards) {
    const auto key = dataset_key(prefix, shard.key);
    const auto bytes = store.get(key);
    if (!bytes) fail(ErrorCode::kDataLoss, "shard '{}' of the dataset is missing", key);
    if (bytes->size() != shard.bytes || checksum(bytes->view()) != shard.checksum) {
      fail(ErrorCode::kDataLoss,
           "shard '{}' is damaged: {} bytes with checksum {}, the index says {} with {}", key,
           bytes->size(), to_hex(checksum(bytes->view())), shard.bytes, to_hex(shard.checksum));
    }
  }
}

}  // namespace funcpipe
