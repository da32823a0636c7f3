#include "sim/simulator.h"

#include <cmath>
#include <map>
#include <string_view>

#include "base/error.h"
#include "core/batching.h"
#include "sim/engine.h"
#include "sim/summary.h"

namespace funcpipe {
namespace {

using namespace funcpipe::sim;

void check_range(double value, std::string_view what, double least, double most) {
  if (value >= least && value <= most) return;
  fail(ErrorCode::kInvalidArgument, "simulation: {} of {}; it must be between {} and {}", what,
       value, least, most);
}

void check_seconds(double value, std::string_view what) {
  check_range(value, what, 0, kLongestTaskSeconds);
}

// Delays of 0 would let a receiver ask for ever at the same time.
void check_waiting(const SimulationOptions& options) {
  check_range(to_seconds(options.backoff.first), "a first delay in seconds", 1e-6, 1e3);
  check_range(to_seconds(options.backoff.most), "a longest delay in seconds", 1e-6, 1e3);
  check_range(options.backoff.factor, "a growth of the delay", 1, 1e6);
  check_range(to_seconds(options.stop_check), "a stop check in seconds", 1e-3, 1e6);
}

void check(const SimulationOptions& options) {
  if (options.steps < 1) {
    fail(ErrorCode::kInvalidArgument, "simulation: {} steps; at least one is needed",
         options.steps);
  }
  constexpr double kMostJitter = 10;
  check_range(options.jitter.compute, "a compute jitter", 0, kMostJitter);
  check_range(options.jitter.latency, "a latency jitter", 0, kMostJitter);
  check_range(options.jitter.transfer, "a transfer jitter", 0, kMostJitter);
  check_waiting(options);
  check_seconds(options.latency_seconds.value_or(0), "a latency in seconds");
  check_seconds(options.begin_step_seconds, "a begin of step in seconds");
  check_range(options.store.bytes_per_second, "a store bandwidth", 0, 1e18);
  check_range(options.store.requests_per_second, "a request rate", 0, 1e12);
  for (std::size_t k = 0; k < kTaskKinds; ++k) {
    const auto name =
        fmt::format("an overhead of '{}' in seconds", to_string(static_cast<TaskKind>(k)));
    check_seconds(options.overheads[k].seconds, name);
    check_seconds(options.overheads[k].seconds_per_byte, name + " a byte");
  }
}

void check(const TrainingShape& shape, const ModelProfile& profile) {
  if (shape.batch_size < 1 || shape.samples < 0) {
    fail(ErrorCode::kInvalidArgument,
         "simulation: a mini-batch of {} samples of {}; at least one is needed", shape.batch_size,
         shape.samples);
  }
  if (shape.micro_batch_size != 0 && shape.micro_batch_size != profile.micro_batch_size) {
    fail(ErrorCode::kInvalidArgument,
         "the profile of '{}' was taken with micro-batches of {} samples, the job has {}: profile "
         "it again, or take micro-batches of {}",
         profile.model, profile.micro_batch_size, shape.micro_batch_size, profile.micro_batch_size);
  }
}

// The programs of all steps; steps of as many samples share one.
class Programs {
 public:
  Programs(const std::vector<StageCosts>& stages, const Plan& plan, const TrainingShape& shape,
           std::int64_t micro_batch_size, const SimulationOptions& options) {
    const StepSequence sequence(shape.samples > 0 ? shape.samples : shape.batch_size,
                                shape.batch_size, 1, options.steps);
    for (std::int64_t s = 0; s < sequence.steps(); ++s) {
      const auto samples = sequence.at(s).count;
      if (!by_samples_.contains(samples)) {
        const StepContext context{stages, split_mini_batch(samples, micro_batch_size),
                                  micro_batch_size, options};
        by_samples_.emplace(samples, make_program(context, plan, shape.clip));
      }
      of_steps_.push_back(&by_samples_.at(samples));
    }
  }
  const std::vector<const Program*>& of_steps() const { return of_steps_; }

 private:
  std::map<std::int64_t, Program> by_samples_;
  std::vector<const Program*> of_steps_;
};

std::vector<WorkerLinks> links_of(const Plan& plan, const std::vector<StageCosts>& stages,
                                  const SimulationOptions& options) {
  std::vector<WorkerLinks> links;
  for (const auto& worker : plan.workers()) {
    const auto& stage = stages[static_cast<std::size_t>(worker.stage)];
    links.push_back({sim_time(stage.latency_seconds), stage.uplink_bytes_per_second,
                     stage.downlink_bytes_per_second,
                     sim_time(options.cold_starts ? stage.start_seconds : 0)});
  }
  return links;
}

}  // namespace

SimulationResult simulate(const ModelProfile& profile, const Plan& plan, const TrainingShape& shape,
                          const SimulationOptions& options) {
  check(options);
  check(shape, profile);
  const auto stages = stage_costs(profile, plan, options);
  const Programs programs(stages, plan, shape, profile.micro_batch_size, options);
  const auto links = links_of(plan, stages, options);
  const auto history = Engine(programs.of_steps(), links, options).run();
  auto result = summarise(history, stages);
  if (options.traces) result.traces = traces_of(history);
  return result;
}

}  // namespace funcpipe
