// The pass over all positions, from the last layer to the first, that prepends stages to labels
// (exact_labels.h), drops those that the bounds (exact_bounds.h) find useless or that others
// dominate, and offers complete plans to the target. Internal to the exact solver.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <vector>

#include "planner/exact_bounds.h"
#include "planner/exact_labels.h"
#include "planner/exact_solver.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

// When to give up.
class Watch {
 public:
  explicit Watch(const ExactOptions& options);
  bool is_over();  // looks at the clock now and then; stays true
  double seconds() const;

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const ExactOptions options_;
  int calls_ = 0;
  bool over_ = false;
};

struct SearchLimits {
  std::int64_t max_stages = std::numeric_limits<std::int64_t>::max();
  std::size_t beam = std::numeric_limits<std::size_t>::max();  // labels kept at a position
};

class Search {
 public:
  Search(const DegreeModel& model, const PlanningProblem& problem, PrefixBounds& bounds,
         Target& target, Watch& watch);

  // True: every useful plan of this degree was found. False: the beam cut labels off, or time ran
  // out.
  bool run(const SearchLimits& limits);

  std::int64_t explored() const { return explored_; }  // labels, in all runs

 private:
  void settle(int position);
  void expand(int end, std::size_t index);
  void expand(int end, std::size_t index, int option, double largest_bottleneck);
  void add(int position, const Label& label);
  void complete(const Label& label);
  Solution solution_of(const Label& label) const;

  const DegreeModel& model_;
  const PlanningProblem& problem_;
  PrefixBounds& bounds_;
  Target& target_;
  Watch& watch_;
  SearchLimits limits_;
  bool counts_stages_ = false;
  bool complete_ = true;
  int version_ = -1;
  std::int64_t explored_ = 0;
  std::vector<std::vector<Candidate>> labels_;  // by position
  std::vector<std::size_t> settled_;            // how many were left by the last filter
};

}  // namespace funcpipe::exact
