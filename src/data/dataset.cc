#include "data/dataset.h"

#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/checksum.h"
#include "base/config.h"
#include "base/error.h"

namespace funcpipe {
namespace {

std::unique_ptr<DatasetColumn> make_column(ObjectStore& store, std::string_view prefix,
                                           const DatasetIndex& index,
                                           ColumnExtent ShardFacts::*extent,
                                           const DatasetOptions& options,
                                           std::uint64_t& cache_bytes) {
  const auto& facts = extent == &ShardFacts::input ? index.input : index.target;
  std::vector<ColumnShard> shards;
  std::int64_t first = 0;
  for (const auto& shard : index.shards) {
    const auto& column = shard.*extent;
    shards.push_back(
        {dataset_key(prefix, shard.key), column.offset, first, shard.records, column.checksum});
    first += shard.records;
  }
  const auto bytes = static_cast<std::uint64_t>(index.records) * record_bytes(facts);
  ColumnOptions column_options;
  column_options.parallel_requests = options.parallel_requests;
  column_options.keep = bytes <= cache_bytes;
  if (column_options.keep) cache_bytes -= bytes;
  return std::make_unique<DatasetColumn>(store, facts, std::move(shards), column_options);
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

Dataset::Dataset(ObjectStore& store, std::string prefix, const DatasetOptions& options)
    : index_(read_dataset_index(store, prefix)) {
  auto cache_bytes = options.cache_bytes;
  targets_ = make_column(store, prefix, index_, &ShardFacts::target, options, cache_bytes);
  inputs_ = make_column(store, prefix, index_, &ShardFacts::input, options, cache_bytes);
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
