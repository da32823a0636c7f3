// The Pareto frontier of time and cost as a table, as JSON and as a plot.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "planner/frontier.h"
#include "planner/planning_problem.h"

namespace funcpipe {

// `recommended`: index of the point to mark.
std::string frontier_table(const PlanningProblem& problem, const Frontier& frontier,
                           std::optional<std::size_t> recommended);
nlohmann::json frontier_json(const PlanningProblem& problem, const Frontier& frontier,
                             std::optional<std::size_t> recommended);
// A self-contained SVG image: seconds of an iteration to the right, its cost upwards, every point
// with a tooltip that names its plan.
std::string frontier_svg(const PlanningProblem& problem, const Frontier& frontier,
                         std::optional<std::size_t> recommended, const std::string& title);

}  // namespace funcpipe
