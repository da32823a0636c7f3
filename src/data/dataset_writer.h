// Writes arrays as a dataset: shards, then index.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "core/tensor.h"
#include "data/dataset_index.h"
#include "store/object_store.h"

namespace funcpipe {

struct DatasetWriteOptions {
  std::string name;  // for people
  std::uint64_t shard_bytes = 4 * kMebibyte;
  std::optional<std::int64_t> classes =
      std::nullopt;      // integer scalar targets must be below; absent: largest + 1
  bool replace = false;  // whether a different dataset under the prefix may be replaced
};

// Writes record i = (inputs[i], targets[i]) for all i under `prefix` ("" or "a/b") of `store`, and
// returns the index.
//
// index.json is written last and shards are named after their content: an interrupted import is
// no dataset, one that replaces another leaves the old one whole until the new one is complete,
// and repeating an import changes nothing.
//
// Throws Error(kInvalidArgument) for arrays of unequal length, no records, and for an integer
// scalar target that is negative or >= classes, naming the record and the value; kAlreadyExists
// when there is a different dataset and `replace` is false.
DatasetIndex write_dataset(ObjectStore& store, std::string_view prefix, const TensorView& inputs,
                           const TensorView& targets, const DatasetWriteOptions& options);

}  // namespace funcpipe
