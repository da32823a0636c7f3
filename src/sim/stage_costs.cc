#include "sim/stage_costs.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace funcpipe::sim {
namespace {

// The index of the dataset, the manifest and the layers, which are fetched at the same time.
constexpr int kStartRequests = 3;

void check_cover(const ModelProfile& profile, const Plan& plan) {
  int next = 0;
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const auto& stage = plan.stages[k];
    if (stage.first_layer != next || stage.last_layer <= stage.first_layer) {
      fail(ErrorCode::kInvalidArgument,
           "stage {} of the plan has the layers {} to {}; it must begin with layer {} and have at "
           "least one",
           k, stage.first_layer, stage.last_layer, next);
    }
    next = stage.last_layer;
  }
  if (next != profile.layer_count()) {
    fail(ErrorCode::kInvalidArgument, "the plan has {} layers, the profile of '{}' has {}", next,
         profile.model, profile.layer_count());
  }
  if (plan.replicas < 1)
    fail(ErrorCode::kInvalidArgument, "a plan of {} replicas cannot be simulated", plan.replicas);
}

std::size_t option_of(const ModelProfile& profile, const Plan& plan, std::size_t stage) {
  const int memory_mb = plan.stages[stage].memory_mb;
  if (const auto option = profile.option_of(memory_mb)) return *option;
  std::vector<int> known;
  for (const auto& option : profile.options) known.push_back(option.memory_mb);
  fail(
      ErrorCode::kInvalidArgument,
      "stage {} of the plan has {} MB, an option that was not profiled; the profile of '{}' has {}",
      stage, memory_mb, profile.model, fmt::join(known, ", "));
}

void check_fits(const ModelProfile& profile, const Plan& plan, std::size_t stage, int layer,
                std::size_t option) {
  const auto& profiled = profile.layers[static_cast<std::size_t>(layer)];
  if (profiled.timings[option].fits) return;
  std::vector<int> right;
  for (std::size_t i = 0; i < profile.options.size(); ++i)
    if (profiled.timings[i].fits) right.push_back(profile.options[i].memory_mb);
  fail(ErrorCode::kInvalidArgument,
       "layer {} ('{}') does not run in the {} MB of stage {} of the plan; {}", layer,
       profiled.name, plan.stages[stage].memory_mb, stage,
       right.empty() ? std::string("it runs at no option of the profile")
                     : fmt::format("it does in {} MB", fmt::join(right, ", ")));
}

StageCosts costs_of(const ModelProfile& profile, const Plan& plan, std::size_t stage,
                    const SimulationOptions& options) {
  const auto& place = plan.stages[stage];
  const auto index = option_of(profile, plan, stage);
  const auto& option = profile.options[index];
  StageCosts costs;
  costs.memory_mb = option.memory_mb;
  costs.uplink_bytes_per_second = option.uplink_bytes_per_second;
  costs.downlink_bytes_per_second = option.downlink_bytes_per_second;
  costs.latency_seconds = options.latency_seconds.value_or(option.latency_seconds);
  costs.layers = place.last_layer - place.first_layer;
  std::uint64_t bytes = 0;
  for (int i = place.first_layer; i < place.last_layer; ++i) {
    check_fits(profile, plan, stage, i, index);
    const auto& layer = profile.layers[static_cast<std::size_t>(i)];
    costs.forward_seconds += layer.timings[index].forward_seconds;
    costs.backward_seconds += layer.timings[index].backward_seconds;
    costs.update_seconds += layer.timings[index].update_seconds;
    bytes += layer.parameter_bytes + layer.buffer_bytes;
  }
  const auto output_of = [&](int layer) {
    return static_cast<double>(profile.layers[static_cast<std::size_t>(layer)].output_bytes);
  };
  if (place.first_layer > 0) costs.input_bytes = output_of(place.first_layer - 1);
  if (place.last_layer < profile.layer_count())
    costs.output_bytes = output_of(place.last_layer - 1);
  costs.values = bytes / sizeof(float);
  costs.start_seconds = option.cold_start_seconds + kStartRequests * costs.latency_seconds +
                        static_cast<double>(bytes) / option.downlink_bytes_per_second;
  return costs;
}

}  // namespace

std::vector<StageCosts> stage_costs(const ModelProfile& profile, const Plan& plan,
                                    const SimulationOptions& options) {
  check_cover(profile, plan);
  std::vector<StageCosts> result;
  for (std::size_t k = 0; k < plan.stages.size(); ++k)
    result.push_back(costs_of(profile, plan, k, options));
  return result;
}

}  // namespace funcpipe::sim
