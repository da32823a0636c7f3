// The simulator against the runtime: real workers with real threads, schedules, mailboxes and
// throttled links over a store in memory; only the mathematics is replaced by sleep. What differs
// is the simulator's model of the runtime, and nothing else.
//
// Prints a table: seconds of a step and storage requests of a step, measured and simulated.
// Takes about a minute and hardly any CPU.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "core/manifest.h"
#include "core/run_layout.h"
#include "core/trace.h"
#include "data/dataset_writer.h"
#include "runtime/worker.h"
#include "sim/simulator.h"
#include "store/counting_store.h"
#include "store/memory_store.h"
#include "store/throttled_store.h"

namespace funcpipe {
namespace {

// What every layer takes for a full micro-batch, and the links of every function.
struct Load {
  double forward = 0.02, backward = 0.04, update = 0.005;
  std::int64_t output_floats = 100'000;  // of one sample
  std::int64_t parameter_floats = 0;
  double uplink = 70e6, downlink = 70e6, latency = 0.005;
};

struct Scenario {
  std::string name;
  std::vector<int> cuts;
  int layers = 1;
  int replicas = 1;
  AllReduceAlgorithm all_reduce = AllReduceAlgorithm::kPipelined;
  std::int64_t batch = 8, micro_batch = 1, samples = 0;
  bool clip = false;
  Load load = {};
};

constexpr int kShortRun = 4, kLongRun = 10;

TensorBundle zeros(std::int64_t rows, std::int64_t columns) {
  auto memory = std::make_shared<std::vector<float>>(static_cast<std::size_t>(rows * columns));
  TensorBundle bundle;
  TensorView view;
  view.shape = {rows, columns};
  view.data = std::as_bytes(std::span(*memory));
  view.requires_grad = true;
  bundle.tensors.push_back(view);
  bundle.owner = memory;
  return bundle;
}

class SleepingStage : public StageCompute {
 public:
  SleepingStage(const Scenario& scenario, const StageSource& source)
      : scenario_(scenario),
        layers_(static_cast<int>(source.layers.size())),
        is_first_(source.is_first),
        values_(static_cast<std::size_t>(layers_ * scenario.load.parameter_floats)) {}

  void begin_step() override {}
  TensorBundle forward(const MicroBatchContext& context, TensorBundle) override {
    sleep(context, scenario_.load.forward);
    return zeros(context.micro_batch.count, scenario_.load.output_floats);
  }
  LossSums forward_loss(const MicroBatchContext& context, TensorBundle, TensorBundle) override {
    sleep(context, scenario_.load.forward);
    return {1, 0, context.micro_batch.count};
  }
  TensorBundle backward(const MicroBatchContext& context, TensorBundle) override {
    sleep(context, scenario_.load.backward);
    if (is_first_) return {};
    return zeros(context.micro_batch.count, scenario_.load.output_floats);
  }
  std::span<float> synchronised_values(double) override { return values_; }
  std::vector<double> squared_gradient_norms() override {
    return std::vector<double>(static_cast<std::size_t>(layers_), 1.0);
  }
  void apply(double, double) override { sleep(scenario_.load.update * layers_); }
  NamedTensors weights() const override { return {}; }
  NamedTensors state() const override { return {}; }
  void load_state(const NamedTensors&) override {}

 private:
  void sleep(const MicroBatchContext& context, double seconds) {
    sleep(seconds * layers_ * static_cast<double>(context.micro_batch.count) /
          static_cast<double>(scenario_.micro_batch));
  }
  void sleep(double seconds) { clock_.sleep_for(from_seconds(seconds)); }

  const Scenario& scenario_;
  const int layers_;
  const bool is_first_;
  std::vector<float> values_;
  SteadyClock clock_;
};

Plan plan_of(const Scenario& scenario) {
  Plan plan;
  plan.stages = stages_from_cuts(scenario.cuts, scenario.layers, {1769});
  plan.replicas = scenario.replicas;
  plan.all_reduce = scenario.all_reduce;
  return plan;
}

// A run of real workers.
class RealRun {
 public:
  RealRun(const Scenario& scenario, std::int64_t steps) : scenario_(scenario) {
    write_data();
    write_model();
    job_.model.builtin = "sleep";
    job_.data = {"data", "", {}, {}};
    job_.training.steps = steps;
    job_.training.batch_size = scenario.batch;
    job_.training.micro_batch_size = scenario.micro_batch;
    job_.training.clip_norm = scenario.clip ? 1 : 0;
    job_.training.loss = LossKind::kMeanSquaredError;
    const auto plan = plan_of(scenario);
    std::vector<std::jthread> threads;
    for (const auto& worker : plan.workers())
      threads.emplace_back([this, plan, worker] { run_worker_thread(plan, worker); });
  }

  StoreUsage usage() const { return counter_.snapshot(); }

  // Median time between the ends of the steps after the first.
  double step_seconds() {
    std::vector<std::int64_t> ends;
    for (const auto& worker : plan_of(scenario_).workers()) {
      const auto object = messages_.get(RunLayout("run").trace(worker, 0));
      for (const auto& event : worker_trace_from_text(object->text()).events) {
        if (event.step < 0) continue;
        const auto step = static_cast<std::size_t>(event.step);
        if (ends.size() <= step) ends.resize(step + 1, 0);
        ends[step] = std::max(ends[step], event.end_unix_ns);
      }
    }
    std::vector<double> times;
    for (std::size_t i = 1; i < ends.size(); ++i)
      times.push_back(static_cast<double>(ends[i] - ends[i - 1]) * 1e-9);
    std::sort(times.begin(), times.end());
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  }

 private:
  void write_data() {
    const auto records = scenario_.samples > 0 ? scenario_.samples : scenario_.batch;
    const auto values = zeros(records, 1);
    write_dataset(data_, "", values.tensors[0], values.tensors[0], {});
  }

  void write_model() {
    const RunLayout layout("run");
    ModelManifest manifest;
    manifest.name = "sleep";
    manifest.inputs = {{"", DType::kFloat32, {1}}};
    for (int i = 0; i < scenario_.layers; ++i) {
      LayerManifest layer;
      layer.name = std::to_string(i);
      layer.kind = "Sleep";
      layer.file = fmt::format("layer-{}", i);
      layer.export_method = "built-in";
      layer.outputs = {{"", DType::kFloat32, {scenario_.load.output_floats}}};
      manifest.layers.push_back(layer);
      put(messages_, layout.model_file(layer.file), as_bytes("x"));
    }
    put(messages_, layout.model_file("manifest.json"), as_bytes(manifest.to_json().dump()));
  }

  void run_worker_thread(const Plan& plan, const WorkerId& worker) {
    const auto& load = scenario_.load;
    FunctionLinks links(load.uplink, load.downlink, from_seconds(load.latency), clock_);
    const auto open = [&](const std::string& url) -> std::unique_ptr<ObjectStore> {
      if (url == "data") return std::make_unique<ForwardingStore>(data_);
      return std::make_unique<CountingStore>(std::make_unique<ThrottledStore>(messages_, links),
                                             counter_);
    };
    const WorkerTask task{"run", "messages", job_, plan, worker, 0, 0};
    const WorkerEnvironment environment{
        open,
        [&] { return counter_.snapshot(); },
        [&](StageSource source) { return std::make_unique<SleepingStage>(scenario_, source); },
        clock_,
        Deadline::after(clock_, std::chrono::minutes(10)),
        64 * kMebibyte,
        {}};
    try {
      run_worker(task, environment);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      put(messages_, RunLayout("run").stop(), as_bytes("x"));
    }
  }

  const Scenario& scenario_;
  MemoryStore data_, messages_;
  UsageCounter counter_;
  SteadyClock clock_;
  JobSpec job_;
};

std::uint64_t on_wire(std::int64_t floats) {
  return 128 + (static_cast<std::uint64_t>(floats) * 4 + 63) / 64 * 64;
}

SimulationResult simulated(const Scenario& scenario) {
  const auto& load = scenario.load;
  ModelProfile profile;
  profile.model = scenario.name;
  profile.micro_batch_size = scenario.micro_batch;
  profile.options = {{1769, load.uplink, load.downlink, load.latency, 0, 0}};
  ProfiledLayer layer;
  layer.parameter_bytes = static_cast<std::uint64_t>(load.parameter_floats) * 4;
  layer.output_bytes = on_wire(load.output_floats * scenario.micro_batch);
  LayerTiming timing;
  timing.forward_seconds = load.forward;
  timing.backward_seconds = load.backward;
  timing.update_seconds = load.update;
  layer.timings = {timing};
  profile.layers.assign(static_cast<std::size_t>(scenario.layers), layer);
  SimulationOptions options;
  options.steps = kLongRun;
  return simulate(profile, plan_of(scenario),
                  {scenario.batch, scenario.micro_batch, scenario.samples, scenario.clip}, options);
}

void compare(const Scenario& scenario) {
  RealRun first(scenario, kShortRun), second(scenario, kLongRun);
  const double real = second.step_seconds();
  const auto sim = simulated(scenario);
  const auto usage = second.usage() - first.usage();
  const auto per_step = [&](std::uint64_t value) {
    return static_cast<double>(value) / (kLongRun - kShortRun);
  };
  const auto& requests = sim.requests;
  fmt::print(
      "{:<34} {:8.4f} {:8.4f} {:+6.1f} %  puts {:6.1f} {:6.1f}  hits {:6.1f} {:6.1f}  misses "
      "{:6.1f} {:6.1f}  removes {:6.1f} {:6.1f}  up {:11.0f} {:11.0f}  down {:11.0f} {:11.0f}\n",
      scenario.name, real, sim.iteration_seconds, 100 * (sim.iteration_seconds / real - 1),
      per_step(usage.puts), requests.puts, per_step(usage.gets - usage.misses),
      requests.gets - requests.misses, per_step(usage.misses), requests.misses,
      per_step(usage.removes), requests.removes, per_step(usage.bytes_up), requests.bytes_up,
      per_step(usage.bytes_down), requests.bytes_down);
}

std::vector<Scenario> scenarios() {
  const auto three = AllReduceAlgorithm::kThreePhase;
  const auto pipelined = AllReduceAlgorithm::kPipelined;
  Load large{.parameter_floats = 1'000'000};
  Load network{.forward = 0.002, .backward = 0.004, .output_floats = 400'000};
  Load slow_up{.output_floats = 200'000, .uplink = 10e6, .downlink = 100e6};
  Load distant{.latency = 0.04};
  return {
      {"1 x 1", {}, 2, 1, pipelined, 4},
      {"2 x 1", {1}, 2, 1, pipelined, 8},
      {"3 x 1, uneven", {1, 4}, 5, 1, pipelined, 8},
      {"4 x 1, network bound", {1, 2, 3}, 4, 1, pipelined, 8, 1, 0, false, network},
      {"3 x 1, slow uplink", {1, 2}, 3, 1, pipelined, 6, 1, 0, false, slow_up},
      {"3 x 1, 40 ms latency", {1, 2}, 3, 1, pipelined, 6, 1, 0, false, distant},
      {"2 x 2", {1}, 2, 2, pipelined, 8, 1, 0, false, large},
      {"2 x 2, three phases", {1}, 2, 2, three, 8, 1, 0, false, large},
      {"1 x 4, three phases", {}, 2, 4, three, 8, 1, 0, false, large},
      {"1 x 4", {}, 2, 4, pipelined, 8, 1, 0, false, large},
      {"2 x 3, uneven shares, clipping", {1}, 3, 3, pipelined, 8, 1, 0, true, large},
      {"3 x 2, short micro-batches", {1, 2}, 3, 2, pipelined, 10, 4, 0, true, large},
  };
}

}  // namespace
}  // namespace funcpipe

int main() {
  fmt::print("{:<34} {:>8} {:>8}   error   then pairs: measured, simulated, of a step\n", "plan",
             "seconds", "simul.");
  for (const auto& scenario : funcpipe::scenarios()) funcpipe::compare(scenario);
}
