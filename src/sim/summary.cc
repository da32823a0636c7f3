#include "sim/summary.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "sim/critical_path.h"

namespace funcpipe::sim {
namespace {

std::vector<double> durations(const History& history) {
  std::vector<double> result;
  for (auto s = history.first_counted_step(); s < history.steps.size(); ++s) {
    const auto before = s > 0 ? history.steps[s - 1].end : SimTime(0);
    result.push_back(in_seconds(history.steps[s].end - before));
  }
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::size_t nearest(const std::vector<double>& values, double value) {
  const auto distance = [&](double other) { return std::abs(other - value); };
  const auto found = std::min_element(
      values.begin(), values.end(), [&](double a, double b) { return distance(a) < distance(b); });
  return static_cast<std::size_t>(found - values.begin());
}

TaskSeconds divided(TaskSeconds sum, double steps) {
  return {sum.busy / steps, sum.waiting / steps};
}

SimulatedWorker worker_of(const History& history, std::size_t w,
                          const std::vector<StageCosts>& stages) {
  const auto& from = history.workers[w];
  const double steps = history.counted_steps();
  SimulatedWorker worker;
  worker.worker = history.steps[0].program->workers[w].shape.worker;
  worker.memory_mb = stages[static_cast<std::size_t>(worker.worker.stage)].memory_mb;
  worker.start_seconds = in_seconds(from.start);
  worker.end_seconds = in_seconds(from.end);
  const auto begin = history.first_counted_step() > 0 ? from.first_end : from.start;
  worker.step_seconds = in_seconds(from.end - begin) / steps;
  for (std::size_t lane = 0; lane < kLaneCount; ++lane)
    worker.lanes[lane] = divided(from.lanes[lane], steps);
  return worker;
}

StepRequests requests_of(const History& history) {
  StoreUsage sum;
  for (auto s = history.first_counted_step(); s < history.steps.size(); ++s)
    sum += history.steps[s].usage;
  const auto mean = [&](std::uint64_t value) {
    return static_cast<double>(value) / history.counted_steps();
  };
  return {mean(sum.puts),    mean(sum.gets),     mean(sum.misses),    mean(sum.heads),
          mean(sum.removes), mean(sum.bytes_up), mean(sum.bytes_down)};
}

std::int64_t nanoseconds(SimTime time) {
  return std::chrono::round<std::chrono::nanoseconds>(time).count();
}

}  // namespace

SimulationResult summarise(const History& history, const std::vector<StageCosts>& stages) {
  SimulationResult result;
  const auto steps = durations(history);
  result.iteration_seconds = median(steps);
  for (const auto& step : history.steps) result.step_ends.push_back(in_seconds(step.end));
  for (std::size_t w = 0; w < history.workers.size(); ++w)
    result.workers.push_back(worker_of(history, w, stages));
  result.bubble = 1 - result.utilisation(Lane::kCompute);
  for (std::size_t k = 0; k < kTaskKinds; ++k)
    result.kinds[k] = divided(history.kinds[k], history.counted_steps());
  result.requests = requests_of(history);
  result.critical_path = critical_path(
      history, history.first_counted_step() + nearest(steps, result.iteration_seconds));
  result.events = history.events;
  return result;
}

std::vector<WorkerTrace> traces_of(const History& history) {
  std::vector<WorkerTrace> traces;
  for (const auto& worker : history.steps[0].program->workers)
    traces.push_back({worker.shape.worker, 0, {}});
  for (std::size_t s = 0; s < history.steps.size(); ++s) {
    const auto& step = history.steps[s];
    for (std::size_t i = 0; i < step.program->tasks.size(); ++i) {
      const auto& task = step.program->tasks[i];
      const auto& record = history.records[step.first_record + i];
      traces[task.worker].events.push_back({static_cast<int>(task.lane), describe(task.task()),
                                            static_cast<std::int64_t>(s), nanoseconds(record.begin),
                                            nanoseconds(record.end)});
    }
  }
  return traces;
}

}  // namespace funcpipe::sim
