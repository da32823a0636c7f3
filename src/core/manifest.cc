#include "core/manifest.h"

#include <algorithm>
#include <filesystem>
#include <set>

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

Shape read_shape(const ConfigNode& node) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 48;  // sums of bytes stay in range
  Shape shape;
  std::int64_t elements = 1;
  for (const auto& item : node.items()) {
    const auto size = item.as<std::int64_t>();
    if (size < 0) item.reject(fmt::format("dimension {} is negative", size));
    if (size > kMostElements / std::max<std::int64_t>(1, elements)) node.reject("too large");
    elements *= size;
    shape.push_back(size);
  }
  return shape;
}

std::vector<TensorFacts> read_tensors(ConfigReader& reader, std::string_view key) {
  std::vector<TensorFacts> result;
  for (const auto& item : reader.required_node(key).items())
    result.push_back(tensor_facts_from_config(item));
  return result;
}

// The outputs or inputs of a layer: exactly one tensor unless they are a tuple.
void check_tuple(const ConfigReader& reader, std::string_view key, bool is_tuple,
                 const std::vector<TensorFacts>& tensors) {
  if (tensors.empty() || (!is_tuple && tensors.size() != 1)) {
    reader.reject(key, fmt::format("{} tensors do not make {}", tensors.size(),
                                   is_tuple ? "a tuple" : "a single tensor"));
  }
}

// The path of a file within the archive, which must not lead out of it.
std::string read_member_path(ConfigReader& reader, std::string_view key) {
  auto text = reader.required<std::string>(key);
  const std::filesystem::path path(text);
  const bool leads_out = std::find(path.begin(), path.end(), "..") != path.end();
  if (path.empty() || path.is_absolute() || leads_out) {
    reader.reject(key, fmt::format("'{}' is not a path within the archive", text));
  }
  return text;
}

LayerManifest read_layer(const ConfigNode& node) {
  ConfigReader reader(node);
  LayerManifest layer;
  layer.name = reader.required<std::string>("name");
  layer.kind = reader.required<std::string>("kind");
  layer.file = read_member_path(reader, "file");
  layer.export_method = reader.required<std::string>("export_method");
  layer.parameters = read_tensors(reader, "parameters");
  layer.buffers = read_tensors(reader, "buffers");
  layer.output_is_tuple = reader.required<bool>("output_is_tuple");
  layer.outputs = read_tensors(reader, "outputs");
  check_tuple(reader, "outputs", layer.output_is_tuple, layer.outputs);
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
  facts.shape = read_shape(reader.required_node("shape"));
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
  check_tuple(reader, "inputs", manifest.input_is_tuple, manifest.inputs);
  std::set<std::string> names;
  for (const auto& layer : reader.required_node("layers").items()) {
    manifest.layers.push_back(read_layer(layer));
    const auto& name = manifest.layers.back().name;
    if (!names.insert(name).second) layer.reject(fmt::format("a second layer '{}'", name));
  }
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
