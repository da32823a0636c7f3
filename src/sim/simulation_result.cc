#include "sim/simulation_result.h"

namespace funcpipe {

double SimulationResult::utilisation(Lane lane) const {
  if (workers.empty()) return 0;
  double sum = 0;
  for (const auto& worker : workers) sum += worker.utilisation(lane);
  return sum / static_cast<double>(workers.size());
}

StepCost step_cost(const SimulationResult& result, const PlatformSpec& platform) {
  StepCost cost;
  for (const auto& worker : result.workers)
    cost.compute_usd += usd_per_second(platform, worker.memory_mb) * result.iteration_seconds;
  const auto& requests = result.requests;
  cost.storage_usd = requests.puts * platform.usd_per_put +
                     (requests.gets + requests.heads) * platform.usd_per_get;
  return cost;
}

double start_usd(const SimulationResult& result, const PlatformSpec& platform) {
  double usd = 0;
  for (const auto& worker : result.workers) {
    usd += platform.usd_per_invocation +
           usd_per_second(platform, worker.memory_mb) * worker.start_seconds;
  }
  return usd;
}

}  // namespace funcpipe
