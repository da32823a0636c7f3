// Imports files of common formats as datasets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "data/dataset_index.h"
#include "store/object_store.h"

namespace funcpipe {

struct ImportOptions {
  std::string name;  // of the dataset; empty: after the source
  std::uint64_t shard_bytes = 4 * kMebibyte;
  std::optional<std::int64_t> classes =
      std::nullopt;      // labels must be below; absent: the largest label + 1
  bool replace = false;  // a different dataset that is there already
  // Which tensors of safetensors files that hold several.
  std::string inputs_key = "input";
  std::string targets_key = "target";
};

struct ImportResult {
  std::string prefix;  // where in the store
  DatasetIndex index;
};

// Both throw what write_dataset and the parsers of the formats throw, with the files named.

// MNIST and its drop-in replacements: finds train-images-idx3-ubyte, train-labels-idx1-ubyte and
// the same for t10k (also with '.' for the first '-' before "idx", also .gz) in the folder or
// archive `source` or any folder inside, and writes <prefix>/train and <prefix>/test. Of several
// files of one name the outermost is taken. Throws Error(kNotFound) naming what is missing, before
// anything is written.
std::vector<ImportResult> import_mnist(const std::filesystem::path& source, ObjectStore& store,
                                       std::string_view prefix, const ImportOptions& options);

// Any two arrays of equal length: IDX, .npy or safetensors, gzipped or not (the same safetensors
// file twice when it holds both). IDX images [records, H, W] become records of [1, H, W].
ImportResult import_pair(const std::filesystem::path& inputs, const std::filesystem::path& targets,
                         ObjectStore& store, std::string_view prefix, const ImportOptions& options);

}  // namespace funcpipe
