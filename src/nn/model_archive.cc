#include "nn/model_archive.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/archive.h"

namespace funcpipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestFile = "manifest.json";

[[noreturn]] void reject_missing_layer(std::string_view archive, const ModelManifest& manifest,
                                       std::size_t layer, std::string_view problem) {
  const auto& facts = manifest.layers[layer];
  fail(ErrorCode::kDataLoss, "model archive '{}': the file '{}' of layer {} ('{}', {}) {}", archive,
       facts.file, layer, facts.name, facts.kind, problem);
}

void check_layer_names(const ModelManifest& manifest, std::string_view archive) {
  std::set<std::string> names;
  for (const auto& layer : manifest.layers) {
    if (!names.insert(layer.name).second) {
      fail(ErrorCode::kInvalidArgument, "model archive '{}': two layers have the name '{}'",
           archive, layer.name);
    }
  }
}

ModelManifest parse_manifest(std::string_view text, const fs::path& name) {
  auto manifest = ModelManifest::from_config(ConfigNode::from_text(text, name.string()));
  check_layer_names(manifest, name.parent_path().string());
  return manifest;
}

void check_layer_files(const ModelManifest& manifest, const fs::path& folder) {
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    std::error_code error;
    const auto size = fs::file_size(folder / manifest.layers[i].file, error);
    if (error) reject_missing_layer(folder.string(), manifest, i, "is missing");
    if (size == 0) reject_missing_layer(folder.string(), manifest, i, "is empty");
  }
}

// The folder inside an archive file that holds the manifest, "" or "name/".
std::string find_manifest_folder(const fs::path& path) {
  std::vector<std::string> folders;
  for (const auto& name : list_archive(path)) {
    const fs::path member(name);
    if (member.filename() != kManifestFile) continue;
    folders.push_back(member.has_parent_path() ? member.parent_path().string() + "/" : "");
  }
  if (folders.size() != 1) {
    fail(ErrorCode::kInvalidArgument, "'{}' is not a model archive: it holds {} files {}, not one",
         path.string(), folders.size(), kManifestFile);
  }
  return folders.front();
}

ModelArchive open_archive_file(const fs::path& path) {
  const auto prefix = find_manifest_folder(path);
  std::map<std::string, Buffer> members;
  for (auto& member :
       read_archive(path, [&](const auto& name) { return name.starts_with(prefix); })) {
    members[member.name.substr(prefix.size())] = std::move(member.data);
  }
  auto manifest = parse_manifest(members.at(kManifestFile).text(), path / kManifestFile);
  std::vector<Buffer> files;
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    auto& file = members[manifest.layers[i].file];
    if (file.empty()) reject_missing_layer(path.string(), manifest, i, "is missing or empty");
    files.push_back(std::move(file));
  }
  return ModelArchive(std::move(manifest), std::move(files));
}

// Puts `fresh` where `target` is; a model archive that was there is gone afterwards.
void replace_folder(const fs::path& fresh, const fs::path& target) {
  if (!fs::exists(target)) return fs::rename(fresh, target);
  const auto old = fs::path(fresh.string() + ".old");
  fs::rename(target, old);
  fs::rename(fresh, target);
  fs::remove_all(old);
}

}  // namespace

ModelArchive::ModelArchive(ModelManifest manifest, std::vector<Buffer> layer_files)
    : manifest_(std::move(manifest)),
      source_(std::make_shared<const Files>(std::move(layer_files))) {}

ModelArchive::ModelArchive(ModelManifest manifest, fs::path folder)
    : manifest_(std::move(manifest)), source_(std::move(folder)) {}

Buffer ModelArchive::layer_file(int layer) const {
  const auto index = static_cast<std::size_t>(layer);
  if (const auto* folder = std::get_if<fs::path>(&source_)) {
    return read_file(*folder / manifest_.layers.at(index).file);
  }
  return Buffer::copy_of(std::get<std::shared_ptr<const Files>>(source_)->at(index).view());
}

ModelArchive open_model_archive(const fs::path& path) {
  if (!fs::exists(path)) {
    fail(ErrorCode::kNotFound, "there is no model archive at '{}'", path.string());
  }
  if (is_archive(path)) return open_archive_file(path);
  const auto manifest_path = path / kManifestFile;
  if (!fs::exists(manifest_path)) {
    fail(ErrorCode::kInvalidArgument, "'{}' is not a model archive: it holds no {}", path.string(),
         kManifestFile);
  }
  auto manifest = parse_manifest(read_text_file(manifest_path), manifest_path);
  check_layer_files(manifest, path);
  return ModelArchive(std::move(manifest), path);
}

void write_model_archive(const ModelArchive& archive, const fs::path& folder) {
  if (fs::exists(folder) && !fs::exists(folder / kManifestFile)) {
    fail(ErrorCode::kAlreadyExists, "'{}' exists and is not a model archive: it is left as it is",
         folder.string());
  }
  const auto target = fs::absolute(folder).lexically_normal();
  const fs::path fresh = fmt::format("{}.{}.tmp", target.string(), ::getpid());
  std::error_code ignored;  // of removing what may not be there
  try {
    for (int i = 0; i < archive.layer_count(); ++i) {
      const auto& file = archive.manifest().layers[static_cast<std::size_t>(i)].file;
      write_file(fresh / file, archive.layer_file(i).view());
    }
    write_file(fresh / kManifestFile, archive.manifest().to_json().dump(1) + "\n");
    replace_folder(fresh, target);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(fresh, ignored);
    throw error_from_errno(error.code().value(), fmt::format("cannot write '{}'", target.string()));
  } catch (...) {
    fs::remove_all(fresh, ignored);
    throw;
  }
}

}  // namespace funcpipe
