#include "profile/profile_function.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "collective/wire.h"
#include "core/run_layout.h"
#include "data/dataset.h"
#include "data/parallel.h"
#include "nn/layer_profiler.h"
#include "nn/synthetic_bundle.h"
#include "nn/torch_runtime.h"
#include "profile/link_probe.h"

namespace funcpipe {
namespace {

constexpr int kParallelDownloads = 8;
constexpr auto kReserve = std::chrono::seconds(2);  // for the answer
// Of CPU time: what a round lasts at least, so that it spans many accounting periods of any quota.
constexpr double kRoundCpuSeconds = 0.05;

Buffer fetch(ObjectStore& store, const std::string& key) {
  auto object = store.get(key);
  if (!object) fail(ErrorCode::kNotFound, "'{}' is not in the store", key);
  return std::move(*object);
}

// The first micro-batch of the dataset; from its begin again when it is shorter.
std::vector<std::uint32_t> first_records(std::int64_t records, std::int64_t count) {
  std::vector<std::uint32_t> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<std::uint32_t>(i % static_cast<std::size_t>(records));
  return result;
}

// What layer `layer` takes: one micro-batch, as the layers before it made it. Beside the model,
// which lies where it lies in a training run.
std::string input_key(const ProfileTask& task, int layer) {
  return fmt::format("{}/input/{}", task.run, layer);
}

std::uint64_t wire_bytes(const TensorBundle& bundle) {
  const auto message = encode(bundle);
  return total_size(message.parts);
}

class LayerTask {
 public:
  LayerTask(const ProfileTask& task, const ProfileEnvironment& environment)
      : task_(task),
        environment_(environment),
        store_(environment.open_store(task.store)),
        manifest_(ModelManifest::from_config(ConfigNode::from_text(
            fetch(*store_, RunLayout(task.run).model_file("manifest.json")).text(),
            "manifest.json"))) {}

  void run(ProfileReport& report) {
    LayerProfiler profiler(profiler_options(), input(), target());
    const auto begin = environment_.clock.now();
    send_output(profiler.first_pass());
    const Duration pass = environment_.clock.now() - begin;
    report.layers.resize(static_cast<std::size_t>(task_.last_layer - task_.first_layer));
    if (!has_time_for((task_.micro_batches * task_.warm_up_passes + 1) * pass)) return;
    const auto bytes = profiler.measure_bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto& layer = report.layers[i];
      layer.activation_bytes = bytes[i].activation;
      layer.workspace_bytes = bytes[i].workspace;
      layer.output_bytes = bytes[i].output;
    }
    for (int i = 0; i < task_.warm_up_passes; ++i) profiler.measure_round(Duration::zero());
    measure_rounds(profiler, task_.micro_batches * pass, report);
  }

 private:
  bool is_last() const { return task_.last_layer == static_cast<int>(manifest_.layers.size()); }
  bool has_time_for(Duration duration) const {
    return environment_.deadline.remaining(environment_.clock) > duration + kReserve;
  }

  LayerProfilerOptions profiler_options() const {
    const auto& job = task_.job;
    LayerProfilerOptions options;
    options.stage = {.first_layer = task_.first_layer,
                     .is_last = is_last(),
                     .model_inputs = manifest_.inputs,
                     .mean = job.data.mean,
                     .scale = job.data.scale,
                     .loss = job.training.loss,
                     .optimizer = job.training.optimizer,
                     .seed = job.seed,
                     .threads = environment_.threads};
    const auto count = static_cast<std::size_t>(task_.last_layer - task_.first_layer);
    options.stage.layers.resize(count);
    for_each_in_parallel(count, kParallelDownloads, [&](std::size_t i) {
      const auto& layer = manifest_.layers.at(static_cast<std::size_t>(task_.first_layer) + i);
      options.stage.layers[i] = {layer,
                                 fetch(*store_, RunLayout(task_.run).model_file(layer.file))};
    });
    options.samples = job.training.micro_batch_size;
    options.micro_batches = task_.micro_batches;
    options.measures_norm = job.training.clip_norm > 0;
    options.cpus = environment_.cpus;
    options.wire_bytes = wire_bytes;
    return options;
  }

  TensorBundle read_data(TensorBundle (Dataset::*read)(std::span<const std::uint32_t>)) {
    const auto store = environment_.open_store(task_.job.data.train);
    Dataset dataset(*store, "", {.cache_bytes = 0});
    return (dataset.*read)(first_records(dataset.records(), task_.job.training.micro_batch_size));
  }

  TensorBundle input() {
    if (task_.first_layer == 0) return read_data(&Dataset::read_inputs);
    auto object = store_->get(input_key(task_, task_.first_layer));
    if (object) return decode(std::move(*object));
    const auto& before = manifest_.layers.at(static_cast<std::size_t>(task_.first_layer) - 1);
    return synthetic_bundle(before.outputs, before.output_is_tuple,
                            task_.job.training.micro_batch_size);
  }
  TensorBundle target() { return is_last() ? read_data(&Dataset::read_targets) : TensorBundle{}; }

  void send_output(const TensorBundle& output) {
    if (is_last()) return;
    const auto message = encode(output);
    store_->put_if_absent(input_key(task_, task_.last_layer), message.parts);
  }

  // `longest` is a guess of how long a round takes.
  void measure_rounds(LayerProfiler& profiler, Duration longest, ProfileReport& report) {
    const auto at_least =
        from_seconds(std::max(task_.round_seconds, kRoundCpuSeconds / environment_.cpus));
    longest = std::max(longest, at_least);
    for (int i = 0; i < task_.rounds && has_time_for(2 * longest); ++i) {
      const auto begin = environment_.clock.now();
      const auto round = profiler.measure_round(at_least);
      longest = std::max(longest, Duration(environment_.clock.now() - begin));
      report.stretch.push_back(round.stretch);
      for (std::size_t layer = 0; layer < round.layers.size(); ++layer) {
        report.layers[layer].forward.push_back(round.layers[layer].forward);
        report.layers[layer].backward.push_back(round.layers[layer].backward);
        report.layers[layer].update.push_back(round.layers[layer].update);
      }
    }
  }

  const ProfileTask& task_;
  const ProfileEnvironment& environment_;
  const std::unique_ptr<ObjectStore> store_;
  const ModelManifest manifest_;
};

LinkReport measure_links(const ProfileTask& task, const ProfileEnvironment& environment) {
  const auto store = environment.open_store(task.store);
  return probe_links(*store, fmt::format("{}/links/{}", task.run, environment.memory_mb),
                     environment.clock, {task.burst_bytes, from_seconds(task.transfer_seconds)});
}

}  // namespace

ProfileReport run_profile_task(const ProfileTask& task, const ProfileEnvironment& environment) {
  ProfileReport report;
  switch (task.kind) {
    case ProfileTask::Kind::kStart:
      use_torch_once();
      break;
    case ProfileTask::Kind::kLinks:
      report.links = measure_links(task, environment);
      break;
    case ProfileTask::Kind::kLayers:
      LayerTask(task, environment).run(report);
      break;
  }
  report.usage = environment.usage();
  return report;
}

}  // namespace funcpipe
