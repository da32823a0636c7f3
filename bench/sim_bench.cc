// How fast the simulator is: whole simulations of large plans, four steps each.
#include <benchmark/benchmark.h>

#include "sim/simulator.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kMicroBatches = 64;  // of every replica

ModelProfile large_profile(int layers) {
  ModelProfile profile;
  profile.options = {{2048, 70e6, 70e6, 0.04, 2, 200'000'000}};
  for (int i = 0; i < layers; ++i) {
    ProfiledLayer layer;
    layer.parameter_bytes = 4'000'000;
    layer.output_bytes = 1'000'000;
    LayerTiming timing;
    timing.forward_seconds = 0.05 + 0.001 * (i % 7);
    timing.backward_seconds = 0.1 + 0.002 * (i % 5);
    layer.timings = {timing};
    profile.layers.push_back(layer);
  }
  return profile;
}

Plan plan_of(int stages, int replicas) {
  Plan plan;
  plan.stages = stages_from_cuts(even_cuts(stages, stages), stages, {2048});
  plan.replicas = replicas;
  return plan;
}

void run(benchmark::State& state, const SimulationOptions& options) {
  const auto stages = static_cast<int>(state.range(0)), replicas = static_cast<int>(state.range(1));
  const auto profile = large_profile(stages);
  const auto plan = plan_of(stages, replicas);
  std::uint64_t events = 0;
  for (auto _ : state) {
    const auto result = simulate(profile, plan, {kMicroBatches * replicas}, options);
    events += result.events;
    benchmark::DoNotOptimize(result.iteration_seconds);
  }
  state.counters["functions"] = stages * replicas;
  state.counters["events/s"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

// As the runtime waits.
void BM_Polling(benchmark::State& state) { run(state, {}); }

void BM_Ideal(benchmark::State& state) { run(state, SimulationOptions::closed_form()); }

void BM_Jitter(benchmark::State& state) {
  SimulationOptions options;
  options.jitter = {0.1, 0.3, 0.1};
  run(state, options);
}

// A store that all functions share: every request and every transfer is an event.
void BM_SharedStore(benchmark::State& state) {
  SimulationOptions options;
  options.store = {10e9, 5500};
  run(state, options);
}

// stages, replicas
BENCHMARK(BM_Polling)
    ->ArgNames({"stages", "replicas"})
    ->Args({4, 4})
    ->Args({1000, 1})
    ->Args({250, 4})
    ->Args({32, 32})
    ->Args({4, 250})
    ->Args({1000, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Ideal)->Args({250, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Jitter)->Args({250, 4})->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SharedStore)->Args({250, 4})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace funcpipe

BENCHMARK_MAIN();
