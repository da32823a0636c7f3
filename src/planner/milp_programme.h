// The mixed-integer programme of one degree, as milp_solver.h writes it down. Internal to the MILP
// solver.
#pragma once

#include <vector>

#include "planner/milp_model.h"
#include "planner/milp_stages.h"
#include "planner/planning_problem.h"

namespace funcpipe {

class MilpProgramme {
 public:
  // `stages`: not empty, as milp_stages() gave them for this cutoff. All are borrowed.
  MilpProgramme(const PlanningProblem& problem, const Objective& objective, int degree,
                const std::vector<MilpStage>& stages, double cutoff);

  // Plans of a value above the cutoff are of no interest. The result's bound is one of the value.
  MilpResult solve(Duration time_limit) const;

  Solution plan(const MilpResult& result) const;
  // From now on without this plan.
  void exclude(const Solution& solution);

 private:
  using Term = MilpModel::Term;
  using Terms = std::vector<Term>;

  // lower <= terms + sum of factor(stage) z <= upper
  template <typename Factor>
  void add_sum(double lower, Terms terms, Factor factor, double upper);
  // terms >= sum of seconds(stage) z
  template <typename Seconds>
  void add_at_least(Terms terms, Seconds seconds);
  // One row for each layer: the columns of the stages are a flow from layer 0 to the end. `source`
  // is added to the row of layer 0.
  void add_flow(int first_column, const Terms& source, double amount);

  void add_seconds();
  void add_backward(int rest);
  void add_usd();

  const Objective& objective_;
  const std::vector<MilpStage>& stages_;
  const int degree_;
  const int layers_;
  const double waits_;  // mu - 1
  const double cutoff_;
  double value_unit_ = 1;   // of the programme's objective
  double second_unit_ = 1;  // of its times
  int seconds_ = 0;         // column of t; those of z are 0, 1, ...
  MilpModel model_;
};

}  // namespace funcpipe
