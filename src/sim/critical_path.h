// Why a step took as long as it did.
#pragma once

#include "sim/history.h"

namespace funcpipe::sim {

// Walks back from the last event of a step, from every task to the one that started it, to the end
// of the step before. The segments follow each other without gaps; tasks that took no
// time are left out.
CriticalPath critical_path(const History& history, std::size_t step);

}  // namespace funcpipe::sim
