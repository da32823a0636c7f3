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

  std::vector<LayerReport> run() {
    LayerProfiler profiler(profiler_options(), input(), target());
    const auto begin = environment_.clock.now();
    send_output(profiler.first_pass());
    const Duration pass = environment_.clock.now() - begin;
    std::vector<LayerReport> reports(
        static_cast<std::size_t>(task_.last_layer - task_.first_layer));
    if (!has_time_for((task_.warm_up_passes + 2) * pass)) return reports;
    const auto bytes = profiler.measure_bytes();
    for (std::size_t i = 0; i < reports.size(); ++i) {
      reports[i].activation_bytes = bytes[i].activation;
      reports[i].workspace_bytes = bytes[i].workspace;
      reports[i].output_bytes = bytes[i].output;
    }
    for (int i = 0; i < task_.warm_up_passes; ++i) profiler.measure_round(Duration::zero());
    measure_rounds(profiler, 2 * pass, reports);
    return reports;
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
    auto object = store_->get(ProfileLayout(task_.run).input(task_.first_layer));
    if (object) return decode(std::move(*object));
    const auto& before = manifest_.layers.at(static_cast<std::size_t>(task_.first_layer) - 1);
    return synthetic_bundle(before.outputs, before.output_is_tuple,
                            task_.job.training.micro_batch_size);
  }
  TensorBundle target() { return is_last() ? read_data(&Dataset::read_targets) : TensorBundle{}; }

  void send_output(const TensorBundle& output) {
    if (is_last()) return;
    const auto message = encode(output);
    store_->put_if_absent(ProfileLayout(task_.run).input(task_.last_layer), message.parts);
  }

  void measure_rounds(LayerProfiler& profiler, Duration longest,
                      std::vector<LayerReport>& reports) {
    for (int round = 0; round < task_.rounds && has_time_for(2 * longest); ++round) {
      const auto begin = environment_.clock.now();
      const auto seconds = profiler.measure_round(from_seconds(task_.round_seconds));
      longest = std::max(longest, Duration(environment_.clock.now() - begin));
      for (std::size_t i = 0; i < reports.size(); ++i) {
        reports[i].forward.push_back(seconds[i].forward);
        reports[i].backward.push_back(seconds[i].backward);
        reports[i].update.push_back(seconds[i].update);
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
  return probe_links(*store, ProfileLayout(task.run).links(environment.memory_mb),
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
      report.layers = LayerTask(task, environment).run();
      break;
  }
  report.usage = environment.usage();
  return report;
}

}  // namespace funcpipe
