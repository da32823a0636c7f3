// The exact search over all degrees of a problem. Internal to the exact solver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/degree_model.h"
#include "planner/exact_scan.h"
#include "planner/exact_search.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

class Driver {
 public:
  // `counted`: see Price. `least_seconds`: no plan is known to be faster.
  Driver(const PlanningProblem& problem, std::int64_t max_functions, bool counted,
         double least_seconds = 0);

  // Good plans of every degree, for the target to begin with. Before run().
  void scan(Target& target, Watch& watch);

  // Offers the target every plan that is of use to it, or, if time runs out, some. True: all.
  bool run(Target& target, Watch& watch);

  // Some plan fits the memory, and the functions allowed.
  bool has_plans() const { return !degrees_.empty(); }
  std::int64_t explored() const { return explored_; }

  // After run(): no plan's objective is below this but those that were offered.
  double value_bound(const BestTarget& target) const;

 private:
  struct Degree {
    std::unique_ptr<DegreeModel> model;
    UsefulRange range;
    std::int64_t max_stages = 0;
    bool done = false;
    std::vector<double> least_seconds;  // by cell of `unit` price units, once bounds are there
    std::int64_t unit = 1;
  };

  bool run(Degree& degree, Target& target, Watch& watch);
  double value_bound(const Degree& degree, const BestTarget& target) const;

  const PlanningProblem& problem_;
  const std::int64_t max_functions_;
  const bool counted_;
  const double least_seconds_;
  std::vector<Degree> degrees_;
  std::int64_t explored_ = 0;
};

}  // namespace funcpipe::exact
