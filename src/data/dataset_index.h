// index.json of a dataset: what its records look like and which objects (shards) hold them.
// docs/formats.md has the schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "core/manifest.h"

namespace funcpipe {

// The part of a shard that holds one column.
struct ColumnExtent {
  std::uint64_t offset = 0;    // within the shard's object; its length follows from the records
  std::uint64_t checksum = 0;  // of the column's bytes
  bool operator==(const ColumnExtent&) const = default;
};

struct ShardFacts {
  std::string key;  // relative to the dataset
  std::int64_t records = 0;
  std::uint64_t bytes = 0;     // of the object
  std::uint64_t checksum = 0;  // of the object
  ColumnExtent input, target;
  bool operator==(const ShardFacts&) const = default;
};

struct DatasetIndex {
  static constexpr std::string_view kFileName = "index.json";

  std::string name;
  std::int64_t records = 0;
  TensorFacts input, target;  // of one record
  std::int64_t classes = 0;   // for integer scalar targets: they lie in [0, classes); 0: no classes
  std::vector<ShardFacts> shards;  // in record order

  // Throws Error(kInvalidArgument) with file, line and key for what is not an index of a known
  // version, or contradicts itself.
  static DatasetIndex from_config(const ConfigNode& node);
  nlohmann::json to_json() const;
  std::uint64_t bytes() const;  // of all shards
};

// Bytes that one record takes in a column.
std::uint64_t record_bytes(const TensorFacts& facts);

// "<prefix>/<key>", or `key` for the empty prefix.
std::string dataset_key(std::string_view prefix, std::string_view key);

// A few lines for people: name, records, input, target, shards.
std::string describe(const DatasetIndex& index);

}  // namespace funcpipe
