#include "data/dataset_index.h"

#include <charconv>
#include <limits>

#include "base/checksum.h"
#include "base/error.h"
#include "base/units.h"
#include "data/array.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMostRecords = std::numeric_limits<std::uint32_t>::max();

std::int64_t read_count(ConfigReader& reader, std::string_view key, std::int64_t least) {
  const auto value = reader.required<std::int64_t>(key);
  if (value < least) reader.reject(key, fmt::format("must be at least {}", least));
  return value;
}

std::uint64_t read_checksum(ConfigReader& reader) {
  const auto text = reader.required<std::string>("checksum");
  std::uint64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  if (text.size() != 16 || parsed.ec != std::errc() || parsed.ptr != end) {
    reader.reject("checksum", fmt::format("expected 16 hexadecimal digits, got '{}'", text));
  }
  return value;
}

ColumnExtent read_extent(const ConfigNode& node) {
  ConfigReader reader(node);
  ColumnExtent extent;
  extent.offset = static_cast<std::uint64_t>(read_count(reader, "offset", 0));
  extent.checksum = read_checksum(reader);
  reader.finish();
  return extent;
}

ShardFacts read_shard(const ConfigNode& node) {
  ConfigReader reader(node);
  ShardFacts shard;
  shard.key = reader.required<std::string>("key");
  shard.records = read_count(reader, "records", 1);
  shard.bytes = static_cast<std::uint64_t>(read_count(reader, "bytes", 1));
  shard.checksum = read_checksum(reader);
  shard.input = read_extent(reader.required_node("input"));
  shard.target = read_extent(reader.required_node("target"));
  reader.finish();
  return shard;
}

TensorFacts read_column(ConfigReader& reader, std::string_view key) {
  auto facts = tensor_facts_from_config(reader.required_node(key));
  const auto bytes = byte_size(facts.dtype, facts.shape);
  if (!bytes || *bytes == 0 || *bytes > std::numeric_limits<std::uint32_t>::max()) {
    reader.reject(
        key, fmt::format("a record of shape {} is empty or too large", to_string(facts.shape)));
  }
  return facts;
}

void check_extent(const ConfigNode& node, const ShardFacts& shard, const ColumnExtent& extent,
                  const TensorFacts& facts) {
  const auto bytes = static_cast<std::uint64_t>(shard.records) * record_bytes(facts);
  if (extent.offset <= shard.bytes && bytes <= shard.bytes - extent.offset) return;
  node.reject(fmt::format("{} records of {} bytes at offset {} do not fit a shard of {} bytes",
                          shard.records, record_bytes(facts), extent.offset, shard.bytes));
}

void read_shards(ConfigReader& reader, DatasetIndex& index) {
  std::int64_t records = 0;
  for (const auto& node : reader.required_node("shards").items()) {
    auto shard = read_shard(node);
    if (shard.records > kMostRecords) node.reject("too many records");
    check_extent(node, shard, shard.input, index.input);
    check_extent(node, shard, shard.target, index.target);
    records += shard.records;
    index.shards.push_back(std::move(shard));
  }
  if (records != index.records) {
    reader.reject("records", fmt::format("says {}, the shards hold {}", index.records, records));
  }
}

nlohmann::json extent_json(const ColumnExtent& extent) {
  return {{"offset", extent.offset}, {"checksum", to_hex(extent.checksum)}};
}

nlohmann::json shard_json(const ShardFacts& shard) {
  return {{"key", shard.key},
          {"records", shard.records},
          {"bytes", shard.bytes},
          {"checksum", to_hex(shard.checksum)},
          {"input", extent_json(shard.input)},
          {"target", extent_json(shard.target)}};
}

}  // namespace

DatasetIndex DatasetIndex::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  if (const auto version = reader.required<std::int64_t>("funcpipe_dataset"); version != kVersion) {
    reader.reject("funcpipe_dataset",
                  fmt::format("version {} of the format is not known; this build reads version {}",
                              version, kVersion));
  }
  DatasetIndex index;
  index.name = reader.required<std::string>("name");
  index.records = read_count(reader, "records", 1);
  if (index.records > kMostRecords) {
    reader.reject("records", fmt::format("at most {} are supported", kMostRecords));
  }
  index.input = read_column(reader, "input");
  index.target = read_column(reader, "target");
  index.classes = reader.optional<std::int64_t>("classes", 0);
  read_shards(reader, index);
  reader.finish();
  return index;
}

nlohmann::json DatasetIndex::to_json() const {
  auto list = nlohmann::json::array();
  for (const auto& shard : shards) list.push_back(shard_json(shard));
  nlohmann::json json = {{"funcpipe_dataset", kVersion},
                         {"name", name},
                         {"records", records},
                         {"input", funcpipe::to_json(input)},
                         {"target", funcpipe::to_json(target)},
                         {"shards", std::move(list)}};
  if (classes > 0) json["classes"] = classes;
  return json;
}

std::uint64_t DatasetIndex::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards) bytes += shard.bytes;
  return bytes;
}

std::uint64_t record_bytes(const TensorFacts& facts) {
  return static_cast<std::uint64_t>(element_count(facts.shape)) * size_of(facts.dtype);
}

std::string dataset_key(std::string_view prefix, std::string_view key) {
  return prefix.empty() ? std::string(key) : fmt::format("{}/{}", prefix, key);
}

std::string describe(const DatasetIndex& index) {
  return fmt::format(
      "dataset  {}\n"
      "records  {}\n"
      "input    {} {}\n"
      "target   {} {}{}\n"
      "shards   {}, {} in all\n",
      index.name, index.records, to_string(index.input.dtype), to_string(index.input.shape),
      to_string(index.target.dtype), to_string(index.target.shape),
      index.classes > 0 ? fmt::format(", {} classes", index.classes) : "", index.shards.size(),
      format_bytes(static_cast<double>(index.bytes())));
}

}  // namespace funcpipe
