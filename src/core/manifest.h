// manifest.json of a model archive: the chain of layers as everyone but libtorch needs to know it.
//
// A model archive is a folder (or zip) with manifest.json and one TorchScript file per layer;
// docs/models.md has the schema.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "core/tensor.h"

namespace funcpipe {

struct TensorFacts {
  std::string name;  // within the layer, as in its state_dict; empty for inputs and outputs
  DType dtype = DType::kFloat32;
  Shape shape;  // of inputs and outputs: for one sample, without the batch dimension
};

// {"dtype": ..., "shape": [...], "name": ... (absent when empty)}, with the errors of
// ModelManifest::from_config.
TensorFacts tensor_facts_from_config(const ConfigNode& node);
nlohmann::json to_json(const TensorFacts& facts);

struct LayerManifest {
  std::string name;  // key in the whole model's state_dict: its tensors are "<name>.<tensor>"
  std::string kind;  // "Conv2d", for people
  std::string file;  // TorchScript file within the archive
  std::string export_method;  // "script", "trace" or "built-in"
  std::vector<TensorFacts> parameters;
  std::vector<TensorFacts> buffers;
  bool output_is_tuple = false;
  std::vector<TensorFacts> outputs;  // for one sample

  std::uint64_t parameter_bytes() const;
  std::int64_t parameter_count() const;
  std::uint64_t buffer_bytes() const;
  std::uint64_t output_bytes() const;  // for one sample
};

struct ModelManifest {
  std::string name;
  bool input_is_tuple = false;
  std::vector<TensorFacts> inputs;  // for one sample
  std::vector<LayerManifest> layers;

  // Throws Error(kInvalidArgument) naming file and key for a document that is not a manifest of a
  // known version.
  static ModelManifest from_config(const ConfigNode& node);
  nlohmann::json to_json() const;
  std::int64_t parameter_count() const;
};

}  // namespace funcpipe
