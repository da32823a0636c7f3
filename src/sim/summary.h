// From what happened to the figures of a result.
#pragma once

#include <vector>

#include "sim/history.h"
#include "sim/stage_costs.h"

namespace funcpipe::sim {

SimulationResult summarise(const History& history, const std::vector<StageCosts>& stages);
// As the workers of a real run record them, with times since launch.
std::vector<WorkerTrace> traces_of(const History& history);

}  // namespace funcpipe::sim
