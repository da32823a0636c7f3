#include "profile/profile_progress.h"

#include <algorithm>

#include "base/error.h"

namespace funcpipe {
namespace {

using Layer = OptionProgress::Layer;

nlohmann::json layer_json(const Layer& layer) {
  switch (layer.state) {
    case Layer::State::kOpen:
      return nullptr;
    case Layer::State::kDoesNotFit:
      return "does not fit";
    case Layer::State::kMeasured:
      break;
  }
  return layer.report.to_json();
}

Layer layer_from_json(const nlohmann::json& json) {
  if (json.is_null()) return {};
  if (json.is_string()) return {Layer::State::kDoesNotFit, {}};
  return {Layer::State::kMeasured, LayerReport::from_json(json)};
}

nlohmann::json option_json(const OptionProgress& option) {
  auto layers = nlohmann::json::array();
  for (const auto& layer : option.layers) layers.push_back(layer_json(layer));
  nlohmann::json json = {{"layers", std::move(layers)}};
  if (option.start) {
    json["cold_start_seconds"] = option.start->cold_start_seconds;
    json["base_memory_bytes"] = option.start->base_memory_bytes;
  }
  if (option.links) json["links"] = to_json(*option.links);
  return json;
}

OptionProgress option_from_json(const nlohmann::json& json) {
  OptionProgress option;
  for (const auto& layer : json.at("layers")) option.layers.push_back(layer_from_json(layer));
  if (json.contains("cold_start_seconds"))
    option.start = {json.at("cold_start_seconds"), json.at("base_memory_bytes")};
  if (json.contains("links")) option.links = link_report_from_json(json.at("links"));
  return option;
}

}  // namespace

int OptionProgress::open_layers() const {
  return static_cast<int>(std::count_if(layers.begin(), layers.end(), [](const auto& layer) {
    return layer.state == Layer::State::kOpen;
  }));
}

bool OptionProgress::complete() const { return start && links && open_layers() == 0; }

nlohmann::json ProfileProgress::to_json() const {
  auto list = nlohmann::json::object();
  for (const auto& [memory_mb, option] : options)
    list[std::to_string(memory_mb)] = option_json(option);
  return {
      {"funcpipe_profile_progress", 1}, {"fingerprint", fingerprint}, {"options", std::move(list)}};
}

ProfileProgress ProfileProgress::from_text(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    ProfileProgress progress;
    progress.fingerprint = json.at("fingerprint");
    for (const auto& [memory_mb, option] : json.at("options").items())
      progress.options[std::stoi(memory_mb)] = option_from_json(option);
    return progress;
  } catch (const std::exception& error) {
    fail(ErrorCode::kDataLoss, "not the progress of a profile: {}", error.what());
  }
}

}  // namespace funcpipe
