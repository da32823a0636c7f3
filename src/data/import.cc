#include "data/import.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "data/archive.h"
#include "data/array_file.h"
#include "data/dataset_writer.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 4> kMnistFiles = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte"};

std::string shown(std::string_view source, std::string_view member) {
  return fmt::format("{}/{}", source, member);
}

// "a/b/train-images.idx3-ubyte.gz" -> "train-images-idx3-ubyte"
std::string canonical_name(const std::string& path) {
  auto name = fs::path(path).filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  if (const auto dot = name.find(".idx"); dot != std::string::npos) name[dot] = '-';
  return name;
}

bool is_mnist_file(const std::string& path) {
  return std::find(kMnistFiles.begin(), kMnistFiles.end(), canonical_name(path)) !=
         kMnistFiles.end();
}

// Outermost first, plain before compressed.
auto rank(const std::string& path) {
  return std::pair(std::count(path.begin(), path.end(), '/'), path.ends_with(".gz"));
}

// The best of the paths of one file.
std::string best_of(std::vector<std::string> paths, const std::string& source) {
  std::sort(paths.begin(), paths.end(),
            [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (paths.size() > 1 && rank(paths[0]) == rank(paths[1])) {
    fail(ErrorCode::kInvalidArgument,
         "{}: both '{}' and '{}' could be meant; give the folder of one of them", source, paths[0],
         paths[1]);
  }
  return paths[0];
}

// The path of each of kMnistFiles.
std::map<std::string, std::string> find_mnist(const std::vector<std::string>& paths,
                                              const std::string& source) {
  std::map<std::string, std::vector<std::string>> candidates;
  for (const auto& path : paths) {
    if (is_mnist_file(path)) candidates[canonical_name(path)].push_back(path);
  }
  std::map<std::string, std::string> found;
  std::vector<std::string_view> missing;
  for (const auto name : kMnistFiles) {
    const auto of_name = candidates.find(std::string(name));
    if (of_name == candidates.end()) {
      missing.push_back(name);
    } else {
      found.emplace(name, best_of(std::move(of_name->second), source));
    }
  }
  if (!missing.empty()) {
    fail(ErrorCode::kNotFound, "{}: there is no {} (plain or .gz) in it", source,
         fmt::join(missing, ", "));
  }
  return found;
}

std::vector<std::string> list_folder(const fs::path& folder) {
  std::vector<std::string> paths;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied;
  for (const auto& entry : fs::recursive_directory_iterator(folder, kOptions)) {
    if (entry.is_regular_file()) paths.push_back(fs::relative(entry.path(), folder).string());
  }
  return paths;
}

using Files = std::map<std::string, ArrayFile>;  // by canonical name

Files read_mnist_folder(const fs::path& folder) {
  Files files;
  for (const auto& [name, path] : find_mnist(list_folder(folder), folder.string())) {
    files.emplace(name, read_array(folder / path, ""));
  }
  return files;
}

// One pass: what could be needed is read, then the best of it chosen.
Files read_mnist_archive(const fs::path& archive) {
  auto members = read_archive(archive, is_mnist_file);
  std::vector<std::string> paths;
  for (const auto& member : members) paths.push_back(member.name);
  const auto found = find_mnist(paths, archive.string());
  Files files;
  for (auto& member : members) {
    auto name = canonical_name(member.name);
    if (found.at(name) != member.name) continue;
    auto array = parse_array(std::move(member.data), shown(archive.string(), member.name), "");
    files.emplace(std::move(name), std::move(array));
  }
  return files;
}

Files read_mnist(const fs::path& source) {
  if (fs::is_directory(source)) return read_mnist_folder(source);
  if (!fs::exists(source)) {
    fail(ErrorCode::kNotFound, "{}: no such folder or archive", source.string());
  }
  return read_mnist_archive(source);
}

// Images without a channel dimension get one.
TensorView with_channel(const ArrayFile& file) {
  auto view = file.array.view;
  if (file.format == ArrayFormat::kIdx && view.shape.size() == 3) {
    view.shape.insert(view.shape.begin() + 1, 1);
  }
  return view;
}

ImportResult write(const ArrayFile& inputs, const ArrayFile& targets, ObjectStore& store,
                   std::string prefix, const DatasetWriteOptions& options) {
  auto index = write_dataset(store, prefix, with_channel(inputs), targets.array.view, options);
  return {std::move(prefix), std::move(index)};
}

DatasetWriteOptions write_options(const ImportOptions& options, std::string name) {
  return {std::move(name), options.shard_bytes, options.classes, options.replace};
}

}  // namespace

std::vector<ImportResult> import_mnist(const fs::path& source, ObjectStore& store,
                                       std::string_view prefix, const ImportOptions& options) {
  const auto files = read_mnist(source);
  const std::string name = options.name.empty() ? "mnist" : options.name;
  std::vector<ImportResult> results;
  for (const auto& [kind, part] : {std::pair("train", "train"), std::pair("t10k", "test")}) {
    const auto images = fmt::format("{}-images-idx3-ubyte", kind);
    const auto labels = fmt::format("{}-labels-idx1-ubyte", kind);
    try {
      results.push_back(write(files.at(images), files.at(labels), store, dataset_key(prefix, part),
                              write_options(options, fmt::format("{}/{}", name, part))));
    } catch (const Error& error) {
      throw error.with_context(fmt::format("{}: {} with {}", source.string(), images, labels));
    }
  }
  return results;
}

ImportResult import_pair(const fs::path& inputs, const fs::path& targets, ObjectStore& store,
                         std::string_view prefix, const ImportOptions& options) {
  const auto input_file = read_array(inputs, options.inputs_key);
  const auto target_file = read_array(targets, options.targets_key);
  const auto name = options.name.empty() ? inputs.stem().string() : options.name;
  try {
    return write(input_file, target_file, store, std::string(prefix), write_options(options, name));
  } catch (const Error& error) {
    throw error.with_context(fmt::format("{} with {}", inputs.string(), targets.string()));
  }
}

}  // namespace funcpipe
