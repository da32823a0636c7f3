#include "data/array_file.h"

#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/npy.h"
#include "data/safetensors.h"

namespace funcpipe {
namespace {

Array pick(NamedTensors file, const std::string& name, const std::string& key) {
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors) {
    if (tensor.name == key || file.tensors.size() == 1) return {tensor.tensor, file.owner};
    names.push_back(tensor.name);
  }
  fail(ErrorCode::kNotFound, "{}: no tensor is named '{}'; there are: {}", name, key,
       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

ArrayFile parse_array(Buffer bytes, const std::string& name, const std::string& key) {
  if (is_gzip(bytes.view())) bytes = gunzip(bytes.view(), name);
  const auto view = bytes.view();
  if (is_npy(view)) return {parse_npy(std::move(bytes), name), ArrayFormat::kNpy};
  if (is_idx(view)) return {parse_idx(std::move(bytes), name), ArrayFormat::kIdx};
  if (is_safetensors(view)) {
    return {pick(parse_safetensors(std::move(bytes), name), name, key), ArrayFormat::kSafetensors};
  }
  fail(ErrorCode::kInvalidArgument,
       "{}: unknown format ({} bytes); expected IDX, .npy or .safetensors, gzipped or not", name,
       view.size());
}

ArrayFile read_array(const std::filesystem::path& path, const std::string& key) {
  return parse_array(read_file(path), path.string(), key);
}

}  // namespace funcpipe
