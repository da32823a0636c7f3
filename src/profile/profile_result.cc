#include "profile/profile_result.h"

#include <algorithm>

#include "base/error.h"
#include "profile/statistics.h"

namespace funcpipe {
namespace {

using Layer = OptionProgress::Layer;

std::string name_of(OptimizerSpec::Kind kind) {
  switch (kind) {
    case OptimizerSpec::Kind::kSgd:
      return "sgd";
    case OptimizerSpec::Kind::kAdam:
      return "adam";
    case OptimizerSpec::Kind::kAdamW:
      return "adamw";
  }
  fail(ErrorCode::kInternal, "unknown optimizer kind {}", static_cast<int>(kind));
}

ProfiledOption option_from(int memory_mb, const OptionProgress& progress) {
  return {memory_mb,
          progress.links->uplink_bytes_per_second,
          progress.links->downlink_bytes_per_second,
          progress.links->latency_seconds,
          progress.start->cold_start_seconds,
          progress.start->base_memory_bytes};
}

std::vector<ProfiledOption> options_from(const ProfileProgress& progress) {
  std::vector<ProfiledOption> options;
  const LinkReport* links = nullptr;  // of the last option that has any
  for (auto item = progress.options.rbegin(); item != progress.options.rend(); ++item) {
    auto option = item->second;
    if (option.links->uplink_bytes_per_second > 0) links = &*item->second.links;
    if (links) option.links = *links;
    options.push_back(option_from(item->first, option));
  }
  std::reverse(options.begin(), options.end());
  return options;
}

LayerTiming timing_from(const Layer& layer) {
  LayerTiming timing;
  timing.fits = layer.state == Layer::State::kMeasured;
  if (!timing.fits) return timing;
  const auto forward = quartiles_of(layer.report.forward);
  const auto backward = quartiles_of(layer.report.backward);
  timing.forward_seconds = forward.median;
  timing.forward_spread = forward.spread;
  timing.backward_seconds = backward.median;
  timing.backward_spread = backward.spread;
  timing.update_seconds = quartiles_of(layer.report.update).median;
  return timing;
}

ProfiledLayer layer_from(const LayerManifest& manifest, std::size_t index,
                         const ProfileProgress& progress) {
  ProfiledLayer layer;
  layer.name = manifest.name;
  layer.kind = manifest.kind;
  layer.parameter_bytes = manifest.parameter_bytes();
  layer.buffer_bytes = manifest.buffer_bytes();
  bool runs = false;
  for (const auto& [memory_mb, option] : progress.options) {
    const auto& measured = option.layers.at(index);
    layer.timings.push_back(timing_from(measured));
    if (measured.state != Layer::State::kMeasured) continue;
    runs = true;
    layer.activation_bytes = measured.report.activation_bytes;
    layer.workspace_bytes = measured.report.workspace_bytes;
    layer.output_bytes = measured.report.output_bytes;
  }
  if (!runs) {
    fail(ErrorCode::kResourceExhausted,
         "layer {} ('{}', {}) runs at none of the memory options (the largest has {} MB): give "
         "larger ones with --memory, or lower training.micro_batch_size",
         index, manifest.name, manifest.kind, progress.options.rbegin()->first);
  }
  return layer;
}

}  // namespace

ModelProfile make_profile(const ProfileProgress& progress, const ModelManifest& manifest,
                          const JobSpec& job, const std::string& platform) {
  ModelProfile profile;
  profile.model = manifest.name;
  profile.platform = platform;
  profile.source = "measured";
  profile.micro_batch_size = job.training.micro_batch_size;
  profile.optimizer = name_of(job.training.optimizer.kind);
  profile.options = options_from(progress);
  for (std::size_t i = 0; i < manifest.layers.size(); ++i)
    profile.layers.push_back(layer_from(manifest.layers[i], i, progress));
  return profile;
}

}  // namespace funcpipe
