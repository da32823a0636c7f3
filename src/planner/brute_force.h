// Every plan of a small problem, one by one, by evaluate(): what solvers are checked against.
#pragma once

#include <optional>
#include <vector>

#include "planner/ranking.h"

namespace funcpipe {

// The figures of every plan that runs. J (1 + J)^(L - 1) plans a degree.
std::vector<Figures> enumerate_plans(const PlanningProblem& problem);

// The best within the limits; nothing when there is none.
std::optional<Figures> brute_force_best(const std::vector<Figures>& plans,
                                        const Objective& objective);

// Every (seconds, usd) within the limits that no other covers, by increasing seconds.
std::vector<Figures> brute_force_frontier(const std::vector<Figures>& plans,
                                          const Objective& limits);

}  // namespace funcpipe
