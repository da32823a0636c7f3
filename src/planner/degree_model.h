// A planning problem at one data-parallel degree, prepared so that the figures of any stage take
// constant time. Internal to the exact solver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/planning_problem.h"

namespace funcpipe::exact {

// What the money of one degree depends on: usd = seconds * units * usd_per_unit_second + constants.
struct Price {
  double usd_per_unit_second = 0;  // of all replicas together
  bool counted = true;             // false: units and constants are left out, to find the fastest
};

// One memory option. Arrays are indexed by a position 0..L between layers: position i lies before
// layer i. A stage [h, e) lies between two positions.
struct OptionModel {
  std::int64_t units = 0;  // price of a second, in units of the common divisor
  double usd = 0;          // of a stage in one iteration, whatever its time
  // Sums over the layers before a position; 0 for layers that do not run.
  std::vector<double> forward, backward;
  std::vector<double> work;  // forward + backward
  std::vector<double> tail;  // update and synchronisation
  double tail_constant = 0;
  // What crosses a cut here, out of and into a function of this option; 0 at both ends of the model.
  std::vector<double> up, down;
  std::vector<double> link;   // up + down
  std::vector<char> can_cut;  // the links are finite
  // The longest stage that fits and ends at e begins at first_start[e]; e itself when none does.
  std::vector<int> first_start;
};

class DegreeModel {
 public:
  // `divisor`: of all price units. `counted`: see Price.
  DegreeModel(const PlanningProblem& problem, int degree, std::int64_t divisor, bool counted);

  int degree() const { return degree_; }
  int layers() const { return layers_; }
  int replicas() const { return replicas_; }
  double repeats() const { return repeats_; }  // mu - 1: how often the slowest term counts again
  const std::vector<OptionModel>& options() const { return options_; }
  const Price& price() const { return price_; }
  double cut_usd() const { return cut_usd_; }
  double least_stage_usd() const { return least_stage_usd_; }
  bool has_constants() const { return has_constants_; }
  std::int64_t largest_units() const { return largest_units_; }
  std::int64_t least_units() const { return least_units_; }

  // Least number of stages for the layers before a position; layers() + 1 when there is no way.
  const std::vector<int>& least_stages() const { return least_stages_; }

  // The largest of a stage's terms as a sum of forward and backward, counted `repeats` times:
  // a plan's largest forward and largest backward term together are never less.
  double bottleneck(const OptionModel& option, int h, int e) const {
    const auto first = static_cast<std::size_t>(h), last = static_cast<std::size_t>(e);
    return repeats_ * std::max({option.work[last] - option.work[first], option.link[first],
                                option.link[last]});
  }

 private:
  void add_option(const PlanningProblem& problem, int option, std::int64_t divisor);
  void add_sums(const PlanningProblem& problem, std::size_t j, OptionModel& model) const;
  void add_links(const PlanningProblem& problem, std::size_t j, OptionModel& model) const;
  void add_windows(const PlanningProblem& problem, int j, OptionModel& model) const;
  void count_stages();

  int degree_;
  int layers_;
  int replicas_;
  double repeats_;
  Price price_;
  double cut_usd_ = 0;
  double least_stage_usd_ = 0;
  bool has_constants_ = false;
  std::int64_t largest_units_ = 0;
  std::int64_t least_units_ = 0;
  std::vector<OptionModel> options_;
  std::vector<int> least_stages_;
};

// The greatest common divisor of the options' price units.
std::int64_t price_divisor(const PlanningProblem& problem);

}  // namespace funcpipe::exact
