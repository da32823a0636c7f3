#include "core/profile.h"

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kVersion = 1;
// Outside these a value can only be in the wrong unit.
constexpr double kLeastBytesPerSecond = 1e3, kMostBytesPerSecond = 1e13;
constexpr double kMostSeconds = 1e5;
constexpr double kMostBytes = 1e15;

// A number of seconds, or text with a unit ("40 ms").
double read_seconds(const ConfigNode& node) {
  const auto text = node.as<std::string>();
  const bool has_unit = text.find_first_of("nmuh s") != std::string::npos;
  const double seconds = has_unit ? to_seconds(node.as<Duration>()) : node.as<double>();
  if (seconds < 0) node.reject(fmt::format("{} is negative; a time is at least 0 seconds", text));
  if (seconds > kMostSeconds)
    node.reject(fmt::format("{} seconds are more than a day: is the unit right?", text));
  return seconds;
}

// A number of bytes, or text with a unit ("170 MB").
std::uint64_t read_bytes(const ConfigNode& node) {
  const auto text = node.as<std::string>();
  try {
    const auto bytes = parse_bytes(text);
    if (static_cast<double>(bytes) > kMostBytes)
      node.reject(fmt::format("{} bytes are more than any model has: is the unit right?", text));
    return bytes;
  } catch (const Error&) {
    node.reject(fmt::format(
        "'{}' is not an amount of bytes; write for example 170000000 or '170 MB'", text));
  }
}

// A number of bytes per second, or text with a unit ("70 MB/s").
double read_rate(const ConfigNode& node) {
  const auto text = node.as<std::string>();
  double rate = 0;
  if (text.find('/') == std::string::npos) {
    rate = node.as<double>();
  } else {
    try {
      rate = parse_bytes_per_second(text);
    } catch (const Error& error) {
      node.reject(error.what());
    }
  }
  if (rate < kLeastBytesPerSecond || rate > kMostBytesPerSecond) {
    node.reject(
        fmt::format("{} is no bandwidth of a function in bytes per second; write for example "
                    "70000000 or '70 MB/s'",
                    text));
  }
  return rate;
}

ProfiledOption read_option(const ConfigNode& node) {
  ConfigReader reader(node);
  ProfiledOption option;
  option.memory_mb = reader.required<int>("memory_mb");
  if (option.memory_mb < 1) reader.reject("memory_mb", "must be at least 1");
  option.uplink_bytes_per_second = read_rate(reader.required_node("uplink_bytes_per_second"));
  option.downlink_bytes_per_second = read_rate(reader.required_node("downlink_bytes_per_second"));
  option.latency_seconds = read_seconds(reader.required_node("latency_seconds"));
  if (const auto value = reader.optional_node("cold_start_seconds"))
    option.cold_start_seconds = read_seconds(*value);
  if (const auto value = reader.optional_node("base_memory_bytes"))
    option.base_memory_bytes = read_bytes(*value);
  reader.finish();
  return option;
}

std::vector<ProfiledOption> read_options(const ConfigNode& node) {
  std::vector<ProfiledOption> options;
  for (const auto& item : node.items()) {
    options.push_back(read_option(item));
    if (options.size() > 1 && options.back().memory_mb <= options[options.size() - 2].memory_mb)
      item.reject("memory options must be in increasing order");
  }
  if (options.empty()) node.reject("a profile needs at least one memory option");
  return options;
}

// The values of one quantity, one for each option; null where the layer does not fit.
std::vector<std::optional<double>> read_column(const ConfigNode& node, std::size_t options) {
  std::vector<std::optional<double>> column;
  for (const auto& item : node.items()) {
    column.push_back(item.is_null() ? std::nullopt : std::optional(read_seconds(item)));
  }
  if (column.size() != options) {
    node.reject(
        fmt::format("{} values for {} memory options; give one for each", column.size(), options));
  }
  return column;
}

class TimingReader {
 public:
  TimingReader(ConfigReader& reader, std::size_t options) : reader_(reader), timings_(options) {
    const auto forward = read_column(reader.required_node("forward_seconds"), options);
    for (std::size_t i = 0; i < options; ++i) timings_[i].fits = forward[i].has_value();
    fill("forward_seconds", &LayerTiming::forward_seconds, true);
    fill("backward_seconds", &LayerTiming::backward_seconds, true);
    fill("update_seconds", &LayerTiming::update_seconds, false);
    fill("forward_spread", &LayerTiming::forward_spread, false);
    fill("backward_spread", &LayerTiming::backward_spread, false);
  }
  std::vector<LayerTiming> take() { return std::move(timings_); }

 private:
  void fill(std::string_view key, double LayerTiming::*value, bool required) {
    const auto node = reader_.optional_node(key);
    if (!node) {
      if (required) reader_.required_node(key);
      return;
    }
    const auto column = read_column(*node, timings_.size());
    for (std::size_t i = 0; i < column.size(); ++i) {
      if (column[i].has_value() != timings_[i].fits) {
        reader_.reject(key, fmt::format("value {} must be {}, as in forward_seconds", i + 1,
                                        timings_[i].fits ? "a number" : "null"));
      }
      timings_[i].*value = column[i].value_or(0);
    }
  }

  ConfigReader& reader_;
  std::vector<LayerTiming> timings_;
};

ProfiledLayer read_layer(const ConfigNode& node, std::size_t options) {
  ConfigReader reader(node);
  ProfiledLayer layer;
  layer.name = reader.required<std::string>("name");
  layer.kind = reader.optional<std::string>("kind", "");
  layer.parameter_bytes = read_bytes(reader.required_node("parameter_bytes"));
  layer.activation_bytes = read_bytes(reader.required_node("activation_bytes"));
  layer.output_bytes = read_bytes(reader.required_node("output_bytes"));
  if (const auto value = reader.optional_node("buffer_bytes"))
    layer.buffer_bytes = read_bytes(*value);
  if (const auto value = reader.optional_node("workspace_bytes"))
    layer.workspace_bytes = read_bytes(*value);
  layer.timings = TimingReader(reader, options).take();
  reader.finish();
  return layer;
}

nlohmann::json to_json(const ProfiledOption& option) {
  return {{"memory_mb", option.memory_mb},
          {"uplink_bytes_per_second", option.uplink_bytes_per_second},
          {"downlink_bytes_per_second", option.downlink_bytes_per_second},
          {"latency_seconds", option.latency_seconds},
          {"cold_start_seconds", option.cold_start_seconds},
          {"base_memory_bytes", option.base_memory_bytes}};
}

nlohmann::json column(const ProfiledLayer& layer, double LayerTiming::*value) {
  auto list = nlohmann::json::array();
  for (const auto& timing : layer.timings)
    list.push_back(timing.fits ? nlohmann::json(timing.*value) : nlohmann::json());
  return list;
}

nlohmann::json to_json(const ProfiledLayer& layer) {
  return {{"name", layer.name},
          {"kind", layer.kind},
          {"parameter_bytes", layer.parameter_bytes},
          {"buffer_bytes", layer.buffer_bytes},
          {"activation_bytes", layer.activation_bytes},
          {"workspace_bytes", layer.workspace_bytes},
          {"output_bytes", layer.output_bytes},
          {"forward_seconds", column(layer, &LayerTiming::forward_seconds)},
          {"backward_seconds", column(layer, &LayerTiming::backward_seconds)},
          {"update_seconds", column(layer, &LayerTiming::update_seconds)},
          {"forward_spread", column(layer, &LayerTiming::forward_spread)},
          {"backward_spread", column(layer, &LayerTiming::backward_spread)}};
}

}  // namespace

std::uint64_t ModelProfile::parameter_bytes() const {
  return std::accumulate(layers.begin(), layers.end(), std::uint64_t{0},
                         [](auto sum, const auto& layer) { return sum + layer.parameter_bytes; });
}

std::optional<std::size_t> ModelProfile::option_of(int memory_mb) const {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& option) {
    return option.memory_mb == memory_mb;
  });
  if (found == options.end()) return std::nullopt;
  return static_cast<std::size_t>(found - options.begin());
}

ModelProfile ModelProfile::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  if (const auto version = reader.required<std::int64_t>("funcpipe_profile"); version != kVersion) {
    reader.reject("funcpipe_profile",
                  fmt::format("version {} of the format is not known; this build reads version {}",
                              version, kVersion));
  }
  ModelProfile profile;
  profile.model = reader.required<std::string>("model");
  profile.platform = reader.required<std::string>("platform");
  profile.source = reader.optional<std::string>("source", "written by hand");
  profile.micro_batch_size = reader.required<std::int64_t>("micro_batch_size");
  if (profile.micro_batch_size < 1) reader.reject("micro_batch_size", "must be at least 1");
  profile.optimizer = reader.optional<std::string>("optimizer", "");
  profile.options = read_options(reader.required_node("options"));
  const auto layers = reader.required_node("layers");
  for (const auto& item : layers.items())
    profile.layers.push_back(read_layer(item, profile.options.size()));
  if (profile.layers.empty()) layers.reject("a profile needs at least one layer");
  reader.finish();
  return profile;
}

nlohmann::json ModelProfile::to_json() const {
  auto option_list = nlohmann::json::array(), layer_list = nlohmann::json::array();
  for (const auto& option : options) option_list.push_back(funcpipe::to_json(option));
  for (const auto& layer : layers) layer_list.push_back(funcpipe::to_json(layer));
  return {{"funcpipe_profile", kVersion},
          {"model", model},
          {"platform", platform},
          {"source", source},
          {"micro_batch_size", micro_batch_size},
          {"optimizer", optimizer},
          {"options", std::move(option_list)},
          {"layers", std::move(layer_list)}};
}

}  // namespace funcpipe
