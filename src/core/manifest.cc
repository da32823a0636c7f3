#include "core/manifest.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kVersion = 1;

std::uint64_t bytes_of(const std::vector<TensorFacts>& tensors) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += static_cast<std::uint64_t>(element_count(tensor.shape)) * size_of(tensor.dtype);
  }
  return bytes;
}

std::vector<TensorFacts> read_tensors(ConfigReader& reader, std::string_view key) {
  std::vector<TensorFacts> result;
  for (const auto& item : reader.required_node(key).items())
    result.push_back(tensor_facts_from_config(item));
  return result;
}

LayerManifest read_layer(const ConfigNode& node) {
  ConfigReader reader(node);
  LayerManifest layer;
  layer.name = reader.required<std::string>("name");
  layer.kind = reader.required<std::string>("kind");
  layer.file = reader.required<std::string>("file");
  layer.export_method = reader.required<std::string>("export_method");
  layer.parameters = read_tensors(reader, "parameters");
  layer.buffers = read_tensors(reader, "buffers");
  layer.output_is_tuple = reader.required<bool>("output_is_tuple");
  layer.outputs = read_tensors(reader, "outputs");
  reader.finish();
  return layer;
}

nlohmann::json tensors_to_json(const std::vector<TensorFacts>& tensors) {
  auto list = nlohmann::json::array();
  for (const auto& tensor : tensors) list.push_back(to_json(tensor));
  return list;
}

}  // namespace

TensorFacts tensor_facts_from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  TensorFacts facts;
  facts.name = reader.optional<std::string>("name", "");
  try {
    facts.dtype = dtype_from_string(reader.required<std::string>("dtype"));
  } catch (const Error& error) {
    reader.reject("dtype", error.what());
  }
  for (const auto& size : reader.required_node("shape").items())
    facts.shape.push_back(size.as<std::int64_t>());
  for (const auto size : facts.shape) {
    if (size < 0) reader.reject("shape", "a dimension is negative");
  }
  reader.finish();
  return facts;
}

nlohmann::json to_json(const TensorFacts& facts) {
  nlohmann::json json = {{"dtype", std::string(to_string(facts.dtype))}, {"shape", facts.shape}};
  if (!facts.name.empty()) json["name"] = facts.name;
  return json;
}

std::uint64_t LayerManifest::parameter_bytes() const { return bytes_of(parameters); }
std::uint64_t LayerManifest::buffer_bytes() const { return bytes_of(buffers); }
std::uint64_t LayerManifest::output_bytes() const { return bytes_of(outputs); }

std::int64_t LayerManifest::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters) count += element_count(parameter.shape);
  return count;
}

std::int64_t ModelManifest::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& layer : layers) count += layer.parameter_count();
  return count;
}

ModelManifest ModelManifest::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  if (const auto version = reader.required<std::int64_t>("funcpipe_model"); version != kVersion) {
    reader.reject("funcpipe_model",
                  fmt::format("version {} of the format is not known; this build reads version {}",
                              version, kVersion));
  }
  ModelManifest manifest;
  manifest.name = reader.required<std::string>("name");
  manifest.input_is_tuple = reader.required<bool>("input_is_tuple");
  manifest.inputs = read_tensors(reader, "inputs");
  for (const auto& layer : reader.required_node("layers").items())
    manifest.layers.push_back(read_layer(layer));
  if (manifest.layers.empty()) reader.reject("layers", "a model needs at least one layer");
  reader.finish();
  return manifest;
}

nlohmann::json ModelManifest::to_json() const {
  auto list = nlohmann::json::array();
  for (const auto& layer : layers) {
    list.push_back({{"name", layer.name},
                    {"kind", layer.kind},
                    {"file", layer.file},
                    {"export_method", layer.export_method},
                    {"parameters", tensors_to_json(layer.parameters)},
                    {"buffers", tensors_to_json(layer.buffers)},
                    {"output_is_tuple", layer.output_is_tuple},
                    {"outputs", tensors_to_json(layer.outputs)}});
  }
  return {{"funcpipe_model", kVersion},
          {"name", name},
          {"input_is_tuple", input_is_tuple},
          {"inputs", tensors_to_json(inputs)},
          {"layers", std::move(list)}};
}

}  // namespace funcpipe
