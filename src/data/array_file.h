// Arrays from files of any of the formats that datasets are imported from, told apart by content.
#pragma once

#include <filesystem>
#include <string>

#include "base/buffer.h"
#include "data/array.h"

namespace funcpipe {

enum class ArrayFormat { kIdx, kNpy, kSafetensors };

struct ArrayFile {
  Array array;
  ArrayFormat format;
};

// The array in `bytes`: IDX, .npy or safetensors, gzipped or not. Of a safetensors file with
// several tensors it is the one named `key`. `name` is for error texts. Throws
// Error(kInvalidArgument) for an unknown format, kNotFound (listing the names) for a missing key,
// else what the format's parser throws.
ArrayFile parse_array(Buffer bytes, const std::string& name, const std::string& key);
ArrayFile read_array(const std::filesystem::path& path, const std::string& key);

}  // namespace funcpipe
