#include "planner/layer_merging.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.h"

namespace funcpipe {
namespace {

double seconds(const ProfiledLayer& layer) {
  const auto& timing = layer.timings.back();  // the largest memory option: the least disturbed
  return timing.forward_seconds + timing.backward_seconds;
}

// The smaller, the sooner the cut between the two is given up.
double worth(const ProfiledLayer& left, const ProfiledLayer& right) {
  return (seconds(left) + seconds(right)) / (static_cast<double>(left.output_bytes) + 1);
}

LayerTiming joined(const LayerTiming& left, const LayerTiming& right) {
  if (!left.fits || !right.fits) return {.fits = false};
  return {true,
          left.forward_seconds + right.forward_seconds,
          left.backward_seconds + right.backward_seconds,
          left.update_seconds + right.update_seconds,
          left.forward_spread + right.forward_spread,
          left.backward_spread + right.backward_spread};
}

// "conv1..relu3" stands for all layers from the one to the other.
constexpr std::string_view kTo = "..";

std::string first_name(const std::string& name) { return name.substr(0, name.find(kTo)); }

std::string last_name(const std::string& name) {
  const auto at = name.find(kTo);
  return at == std::string::npos ? name : name.substr(at + kTo.size());
}

void append(ProfiledLayer& left, const ProfiledLayer& right) {
  left.name = first_name(left.name).append(kTo) + last_name(right.name);
  left.kind = "merged";
  left.parameter_bytes += right.parameter_bytes;
  left.buffer_bytes += right.buffer_bytes;
  left.activation_bytes += right.activation_bytes;
  left.workspace_bytes = std::max(left.workspace_bytes, right.workspace_bytes);
  left.output_bytes = right.output_bytes;
  for (std::size_t i = 0; i < left.timings.size(); ++i)
    left.timings[i] = joined(left.timings[i], right.timings[i]);
}

std::size_t least_worthy_cut(const std::vector<ProfiledLayer>& layers) {
  std::size_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const double value = worth(layers[i - 1], layers[i]);
    if (value < least) {
      least = value;
      best = i;
    }
  }
  return best;
}

}  // namespace

MergedProfile merge_layers(const ModelProfile& profile, int layers) {
  if (layers < 1) {
    fail(ErrorCode::kInvalidArgument, "a model cannot be merged into {} layers; choose at least 1",
         layers);
  }
  MergedProfile merged{profile, {}};
  for (int i = 0; i <= profile.layer_count(); ++i) merged.first_layer.push_back(i);
  auto& list = merged.profile.layers;
  while (list.size() > static_cast<std::size_t>(layers)) {
    const auto cut = static_cast<std::ptrdiff_t>(least_worthy_cut(list));
    append(list[static_cast<std::size_t>(cut) - 1], list[static_cast<std::size_t>(cut)]);
    list.erase(list.begin() + cut);
    merged.first_layer.erase(merged.first_layer.begin() + cut);
  }
  return merged;
}

Plan unmerged(Plan plan, const MergedProfile& merged) {
  for (auto& stage : plan.stages) {
    stage.first_layer = merged.first_layer.at(static_cast<std::size_t>(stage.first_layer));
    stage.last_layer = merged.first_layer.at(static_cast<std::size_t>(stage.last_layer));
  }
  return plan;
}

}  // namespace funcpipe
