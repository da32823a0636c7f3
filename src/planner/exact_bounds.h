// How good a partial plan can still become. Internal to the exact solver.
//
// A partial plan (Label, exact_labels.h) covers the layers from position h to the last. Let the
// prefix [0, h) be covered in any way, with sum S of its terms, forward terms x' and backward terms y' the
// largest times (mu - 1), and let stage 0 be the one whose backward pass ends last, or a stage of
// the label. Then
//
//   t >= Q + S + tail(0) + max(x, x') + max(y, y')      (t_b of stage 0, which all terms enter)
//   t >= P + S_forward + x                              (t_b of the label's worst stage)
//
// and max(x, x') + max(y, y') >= max(x + y, z'), where z' is the largest *bottleneck* of the prefix:
// (mu - 1) times the largest of F + B, and up + down at a cut, of one stage. Thresholds
// theta_0 < theta_1 < ... < infinity split the prefixes by z'. For every position, threshold and
// number of price units the tables hold
//
//   within[k][h][c] = least S + tail(0) of prefixes with z' <= theta_k that cost c cells
//   beyond[k][h][c] = min over k' >= k of within[k'][h][c] + theta_(k'-1)      (theta_-1: least z of any plan)
//
// so with theta_(k-1) < x + y <= theta_k
//
//   t >= Q + min(within[k][h][c] + max(x + y, theta_(k-1)), beyond[k + 1][h][c])
//
// and the partial plan is of no use when, for every c, this exceeds the target's cap at its cells
// and c together. A cell is `unit` price units; every stage is rounded down to cells, so that a plan
// of c cells costs at least c * unit, and caps do not grow with units.
//
// The tables are kept as float. They are rounded down, and the caps up, by more than the rounding
// errors of the comparison.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "planner/degree_model.h"
#include "planner/exact_labels.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

class PrefixTable;

// What useful plans have to be like. Found by one table, used by the next and finer one.
struct UsefulRange {
  double least_sum = 0;  // work and links of all stages
  double least_seconds = 0;
  double least_bottleneck = 0;
  double most_bottleneck = PlanningProblem::kNever;
  std::int64_t most_units = std::numeric_limits<std::int64_t>::max();
};

class PrefixBounds {
 public:
  // Builds the tables with this many thresholds, O(L J thresholds cells), and offers the target the
  // plans that the tables promise to be useful.
  PrefixBounds(const DegreeModel& model, const PlanningProblem& problem, const UsefulRange& range,
               int thresholds, Target& target);

  struct Verdict {
    float room = -1;               // the most that a completion may be below the cap; < 0: useless
    float least_seconds = 0;       // of useful completions
    std::int64_t least_units = 0;  // of label and prefix together, of useful completions
  };
  Verdict judge(int h, const Label& label) const;

  // The largest bottleneck that a useful completion of the label may have.
  double largest_bottleneck(int h, const Label& label) const;

  // Adopts the target's caps after it has changed.
  void update_caps(const Target& target);

  // What is left that may be useful, as of the last update. Nothing: no plan is.
  std::optional<UsefulRange> useful_range() const;

  // Least seconds of any useful plan of c cells, each at least unit() price units; c < cells().
  double least_seconds(int c) const { return beyond_row(0, model_.layers())[c]; }
  int cells() const { return cells_; }
  std::int64_t unit() const { return unit_; }
  std::int32_t option_cells(int option) const {
    return static_cast<std::int32_t>(model_.options()[static_cast<std::size_t>(option)].units /
                                     unit_);
  }

 private:
  struct Cells {
    int first = 0, last = -1;
  };

  std::size_t row(int k, int h) const {
    return (static_cast<std::size_t>(k) * positions_ + static_cast<std::size_t>(h)) *
           static_cast<std::size_t>(cells_);
  }
  const float* within_row(int k, int h) const { return within_.data() + row(k, h); }
  const float* beyond_row(int k, int h) const { return beyond_.data() + row(k, h); }
  const float* forward_row(int h) const { return forward_.data() + row(0, h); }
  const float* critical_row(int h) const { return critical_.data() + row(0, h); }
  const float* cap_row(double usd) const;
  int threshold_count() const { return static_cast<int>(thresholds_.size()); }
  int threshold_of(double bottleneck) const;
  // What no useful plan beyond threshold k - 1 has less than, as its bottleneck.
  double floor_of(int k) const {
    return k == 0 ? range_.least_bottleneck : thresholds_[static_cast<std::size_t>(k) - 1];
  }
  Cells useful_cells(int h, const Label& label) const;
  void choose_grid(const Target& target);
  void choose_thresholds(const Target& target, int count);
  void store(int k, const PrefixTable& table);
  void offer_plans(int k, const PrefixTable& table, const PlanningProblem& problem, Target& target);
  bool is_useful(const float* seconds, float more, int cell) const;

  const DegreeModel& model_;
  const UsefulRange range_;
  std::size_t positions_;
  std::int64_t unit_ = 1;
  int cells_ = 1;
  int usd_levels_ = 1;
  double usd_step_ = 0;
  std::vector<double> thresholds_;
  std::vector<float> within_, beyond_;
  std::vector<float> forward_;  // least forward terms of prefixes, [position][cell]
  std::vector<float> critical_;
  std::vector<int> first_cell_;  // of those that some prefix costs, by position
  std::vector<float> caps_;      // [level of constant usd][cell]
  Cells totals_;                 // of useful plans
};

}  // namespace funcpipe::exact
