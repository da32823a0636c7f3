// A dataset in a store, read record by record.
//
//   Dataset train(store, "mnist/train");
//   TensorBundle images = train.read_inputs(std::vector<std::uint32_t>{7, 3, 59999});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"
#include "core/tensor.h"
#include "data/dataset_column.h"
#include "data/dataset_index.h"
#include "store/object_store.h"

namespace funcpipe {

struct DatasetOptions {
  // Memory that columns may be kept in: the targets if they fit, then the inputs if they fit into
  // what is left. A column that is not kept is read from the store again every time.
  std::uint64_t cache_bytes = 128 * kMebibyte;
  int parallel_requests = 8;
};

// Throws as read_dataset_index and DatasetColumn do. All members may be called by any number of
// threads at once. Values come as they are stored; normalising them is the model's side.
class Dataset {
 public:
  // Reads index.json only. `store` outlives the dataset.
  Dataset(ObjectStore& store, std::string_view prefix, const DatasetOptions& options = {});

  const DatasetIndex& index() const { return index_; }
  std::int64_t records() const { return index_.records; }
  const TensorFacts& input() const { return index_.input; }    // of one record
  const TensorFacts& target() const { return index_.target; }  // of one record
  std::int64_t classes() const { return index_.classes; }      // 0: the targets are no classes

  // One tensor of shape [records.size(), record...] that owns its bytes.
  TensorBundle read_inputs(std::span<const std::uint32_t> records);
  TensorBundle read_targets(std::span<const std::uint32_t> records);

 private:
  DatasetIndex index_;
  std::unique_ptr<DatasetColumn> inputs_, targets_;
};

// Throws Error(kNotFound) when there is no dataset under the prefix, naming those that are near;
// kInvalidArgument with file, line and key for a broken or unknown index.json.
DatasetIndex read_dataset_index(ObjectStore& store, std::string_view prefix);

// Reads every shard and compares it with the index. Throws Error(kDataLoss) naming the first shard
// that is missing, of the wrong size or damaged.
void verify_dataset(ObjectStore& store, std::string_view prefix, const DatasetIndex& index);

}  // namespace funcpipe
