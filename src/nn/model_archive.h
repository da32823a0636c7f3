// A model archive: the manifest of a chain of layers and one TorchScript file for each layer, so
// that a worker reads its own layers only. docs/models.md describes the format.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "core/manifest.h"

namespace funcpipe {

// Immutable; safe to read from several threads. Copies share the bytes.
class ModelArchive {
 public:
  // Layer files in memory, one for each layer of the manifest and in its order.
  ModelArchive(ModelManifest manifest, std::vector<Buffer> layer_files);

  const ModelManifest& manifest() const { return manifest_; }
  int layer_count() const { return static_cast<int>(manifest_.layers.size()); }
  // The TorchScript file of one layer. Throws Error(kNotFound) naming the file.
  Buffer layer_file(int layer) const;

 private:
  friend ModelArchive open_model_archive(const std::filesystem::path& path);
  using Files = std::vector<Buffer>;
  ModelArchive(ModelManifest manifest, std::filesystem::path folder);

  ModelManifest manifest_;
  std::variant<std::filesystem::path, std::shared_ptr<const Files>> source_;
};

// A folder, or an archive file (.zip, .tar, .tar.gz) with manifest.json at its top or in its only
// folder. Throws Error(kNotFound) when there is nothing at `path`, kInvalidArgument when it is no
// model archive or its manifest is wrong, kDataLoss naming the layer whose file is missing or
// empty.
ModelArchive open_model_archive(const std::filesystem::path& path);

// Writes a folder that open_model_archive reads: whole or not at all. A model archive that is there
// already is replaced; throws Error(kAlreadyExists) when `folder` is anything else.
void write_model_archive(const ModelArchive& archive, const std::filesystem::path& folder);

}  // namespace funcpipe
