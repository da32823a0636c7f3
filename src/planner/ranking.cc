#include "planner/ranking.h"

#include <cmath>

namespace funcpipe {
namespace {

int compare(double a, double b) { return clearly_less(a, b) ? -1 : clearly_less(b, a) ? 1 : 0; }

}  // namespace

int compare(const Objective& objective, const Figures& a, const Figures& b) {
  const int by_value =
      compare(objective.value(a.usd, a.seconds), objective.value(b.usd, b.seconds));
  if (by_value != 0) return by_value;
  const int by_time = compare(a.seconds, b.seconds);
  return by_time != 0 ? by_time : compare(a.usd, b.usd);
}

bool covers(const Figures& a, const Figures& b) {
  return !clearly_less(b.seconds, a.seconds) && !clearly_less(b.usd, a.usd);
}

bool within_limits(const Objective& objective, const Figures& figures) {
  return figures.functions <= objective.max_functions &&
         !clearly_less(objective.max_seconds, figures.seconds) &&
         !clearly_less(objective.max_usd, figures.usd);
}

std::optional<Figures> figures_of(const PlanningProblem& problem, const Solution& solution) {
  const auto evaluation = evaluate(problem, solution);
  if (!evaluation.fits || !std::isfinite(evaluation.seconds)) return std::nullopt;
  const auto replicas = problem.degrees[static_cast<std::size_t>(solution.degree)].replicas;
  return Figures{evaluation.seconds, evaluation.usd,
                 std::int64_t{replicas} * static_cast<std::int64_t>(solution.stages.size())};
}

}  // namespace funcpipe
