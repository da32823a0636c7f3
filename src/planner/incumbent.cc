#include "planner/incumbent.h"

namespace funcpipe {

std::optional<Figures> Incumbent::offer(const Solution& solution) {
  ++offers_;
  const auto figures = figures_of(problem_, solution);
  if (!figures || !within_limits(objective_, *figures)) return std::nullopt;
  if (!solution_ || compare(objective_, *figures, figures_) < 0) {
    solution_ = solution;
    figures_ = *figures;
  }
  return figures;
}

double Incumbent::value() const {
  return solution_ ? objective_.value(figures_.usd, figures_.seconds) : PlanningProblem::kNever;
}

SolverResult Incumbent::result() const {
  SolverResult result;
  result.explored = offers_;
  if (!solution_) return result;
  result.solution = solution_;
  result.seconds = figures_.seconds;
  result.usd = figures_.usd;
  result.objective = value();
  result.proof.status = Proof::Status::kFeasible;
  return result;
}

}  // namespace funcpipe
