#include "data/dataset_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "data/array.h"
#include "data/safetensors.h"

namespace funcpipe {
namespace {

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kBool:
      return true;
    default:
      return false;
  }
}

template <typename T>
std::int64_t load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<std::int64_t>(value);
}

std::int64_t integer_at(const TensorView& view, std::int64_t index) {
  const auto* const at = view.data.data() + static_cast<std::size_t>(index) * size_of(view.dtype);
  switch (view.dtype) {
    case DType::kInt64:
      return load<std::int64_t>(at);
    case DType::kInt32:
      return load<std::int32_t>(at);
    case DType::kInt16:
      return load<std::int16_t>(at);
    case DType::kInt8:
      return load<std::int8_t>(at);
    default:
      return load<std::uint8_t>(at);
  }
}

// Number of classes of integer scalar targets, 0 for other targets.
std::int64_t check_classes(const TensorView& targets, std::optional<std::int64_t> classes) {
  if (!is_integer(targets.dtype) || targets.shape.size() != 1) {
    if (!classes) return 0;
    fail(ErrorCode::kInvalidArgument,
         "a number of classes needs targets of one integer per record, these are {} {}",
         to_string(targets.dtype), to_string(targets.shape));
  }
  const auto limit = classes.value_or(std::numeric_limits<std::int64_t>::max());
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < targets.shape[0]; ++i) {
    const auto value = integer_at(targets, i);
    if (value < 0 || value >= limit) {
      fail(ErrorCode::kInvalidArgument, "record {} has the label {}, expected {}", i, value,
           classes ? fmt::format("0 to {}", limit - 1) : "0 or more");
    }
    largest = std::max(largest, value);
  }
  return classes.value_or(largest + 1);
}

TensorFacts record_facts(const TensorView& column, std::string_view what) {
  if (column.shape.empty()) {
    fail(ErrorCode::kInvalidArgument, "the {}s are one scalar, not an array of records", what);
  }
  TensorFacts facts{"", column.dtype, {column.shape.begin() + 1, column.shape.end()}};
  const auto bytes = byte_size(facts.dtype, facts.shape);
  if (!bytes || *bytes == 0 || *bytes > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::kInvalidArgument, "{}s of shape {} make empty or too large records", what,
         to_string(column.shape));
  }
  return facts;
}

std::int64_t check_count(const TensorView& inputs, const TensorView& targets) {
  const auto records = inputs.shape[0];
  if (records != targets.shape[0]) {
    fail(ErrorCode::kInvalidArgument, "{} inputs but {} targets: each record needs one of both",
         records, targets.shape[0]);
  }
  if (records < 1 || records > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::kInvalidArgument, "{} records; a dataset has 1 to 2^32 - 1", records);
  }
  return records;
}

// Records [first, first + count) of a column.
TensorView rows(const TensorView& column, std::int64_t first, std::int64_t count) {
  const auto row = column.data.size() / static_cast<std::size_t>(column.shape[0]);
  TensorView part = column;
  part.shape[0] = count;
  part.data = column.data.subspan(static_cast<std::size_t>(first) * row,
                                  static_cast<std::size_t>(count) * row);
  return part;
}

struct Shard {
  ShardFacts facts;
  SafetensorsFile file;
};

Shard make_shard(std::size_t number, const TensorView& inputs, const TensorView& targets) {
  Shard shard;
  shard.file =
      write_safetensors(std::array<NamedTensor, 2>{{{"input", inputs}, {"target", targets}}});
  auto& facts = shard.facts;
  facts.records = inputs.shape[0];
  facts.bytes = shard.file.size;
  facts.checksum = checksum(shard.file.parts);
  facts.input = {shard.file.offsets[0], checksum(inputs.data)};
  facts.target = {shard.file.offsets[1], checksum(targets.data)};
  facts.key = fmt::format("shard-{:05}-{}.safetensors", number, to_hex(facts.checksum));
  return shard;
}

std::vector<Shard> make_shards(const DatasetIndex& index, const TensorView& inputs,
                               const TensorView& targets, std::uint64_t shard_bytes) {
  const auto row = record_bytes(index.input) + record_bytes(index.target);
  const auto per_shard = static_cast<std::int64_t>(std::max<std::uint64_t>(1, shard_bytes / row));
  std::vector<Shard> shards;
  for (std::int64_t first = 0; first < index.records; first += per_shard) {
    const auto count = std::min(per_shard, index.records - first);
    shards.push_back(
        make_shard(shards.size(), rows(inputs, first, count), rows(targets, first, count)));
  }
  return shards;
}

// Keys of the shards of a dataset that is about to be replaced; none when its index is broken.
std::set<std::string> shard_keys(std::string_view index_text, const std::string& index_key) {
  std::set<std::string> keys;
  try {
    const auto index = DatasetIndex::from_config(ConfigNode::from_text(index_text, index_key));
    for (const auto& shard : index.shards) keys.insert(shard.key);
  } catch (const Error&) {
    keys.clear();
  }
  return keys;
}

void remove_stale_shards(ObjectStore& store, std::string_view prefix, std::set<std::string> stale,
                         const DatasetIndex& index) {
  for (const auto& shard : index.shards) stale.erase(shard.key);
  for (const auto& key : stale) store.remove(dataset_key(prefix, key));
}

}  // namespace

DatasetIndex write_dataset(ObjectStore& store, std::string_view prefix, const TensorView& inputs,
                           const TensorView& targets, const DatasetWriteOptions& options) {
  DatasetIndex index;
  index.name = options.name;
  index.input = record_facts(inputs, "input");
  index.target = record_facts(targets, "target");
  index.records = check_count(inputs, targets);
  index.classes = check_classes(targets, options.classes);
  const auto shards = make_shards(index, inputs, targets, options.shard_bytes);
  for (const auto& shard : shards) index.shards.push_back(shard.facts);

  const auto index_key = dataset_key(prefix, DatasetIndex::kFileName);
  const auto text = index.to_json().dump(1) + "\n";
  const auto old = store.get(index_key);
  if (old && old->text() != text && !options.replace) {
    fail(ErrorCode::kAlreadyExists,
         "there is a different dataset at '{}' already; choose another place, or ask to replace it",
         index_key);
  }
  for (const auto& shard : shards) {
    store.put(dataset_key(prefix, shard.facts.key), shard.file.parts);
  }
  put(store, index_key, as_bytes(text));
  if (old) remove_stale_shards(store, prefix, shard_keys(old->text(), index_key), index);
  return index;
}

}  // namespace funcpipe
