// Good plans to begin with, in milliseconds: with the largest term held under a threshold, and a
// price in seconds on every unit and stage, the rest of a plan's time is a sum over its stages, so
// that a shortest path over the positions between layers finds the best plan of that kind. Internal
// to the exact solver.
#pragma once

#include <optional>
#include <vector>

#include "planner/degree_model.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

class Scan {
 public:
  explicit Scan(const DegreeModel& model);

  struct Weights {
    double max_bottleneck = PlanningProblem::kNever;
    double seconds_per_unit = 0;
    double seconds_per_stage = 0;
  };
  // The path of least work + links + weights with no bottleneck above the threshold. O(L J).
  // False: there is none.
  bool run(const Weights& weights);

  // Of the last path found.
  double sum() const { return best_.back(); }
  Solution solution() const;
  double bottleneck() const;  // the largest of its stages

 private:
  // The positions that a stage of one option may begin at, their path's worth increasing.
  struct Window {
    std::vector<int> positions;
    std::size_t front = 0;
  };
  struct Step {
    int from = 0;
    int option = 0;
  };

  void enter(std::size_t j, int h, const Weights& weights);
  void leave(std::size_t j, int e, const Weights& weights);
  double worth(std::size_t j, int h) const;

  const DegreeModel& model_;
  std::vector<Window> windows_;
  std::vector<double> best_;
  std::vector<Step> steps_;
};

struct ScanReport {
  double least_sum = 0;         // no plan has less work and links
  double least_bottleneck = 0;  // nor a smaller bottleneck
};

// Offers the target some dozens of plans over the whole range of thresholds and prices. Nothing: no
// plan fits the memory.
std::optional<ScanReport> scan(const DegreeModel& model, const PlanningProblem& problem,
                               Target& target);

}  // namespace funcpipe::exact
