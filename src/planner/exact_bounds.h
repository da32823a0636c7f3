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
// and the partial plan is of no use when, for every c, this exceeds the target's cap at its units
// and c together. A cell is `unit` price units; options are rounded down to cells, so that a prefix
// of c cells costs at least c * unit, and caps do not grow with units.
//
// The tables are kept as float. They are rounded down, and the caps up, by more than the rounding
// errors of the comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/degree_model.h"
#include "planner/exact_labels.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

struct ScanReport;
class PrefixTable;

class PrefixBounds {
 public:
  // Builds the tables with this many thresholds, O(L J thresholds cells), and offers the target the
  // plans that the tables promise to be useful.
  PrefixBounds(const DegreeModel& model, const PlanningProblem& problem, const ScanReport& report,
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

  // Least seconds of any plan of at least c * unit() price units; c < cells().
  double least_seconds(int c) const { return beyond_row(0, model_.layers())[c]; }
  int cells() const { return cells_; }
  std::int64_t unit() const { return unit_; }

 private:
  std::size_t row(int k, int h) const {
    return (static_cast<std::size_t>(k) * positions_ + static_cast<std::size_t>(h)) *
           static_cast<std::size_t>(cells_);
  }
  const float* within_row(int k, int h) const { return within_.data() + row(k, h); }
  const float* beyond_row(int k, int h) const { return beyond_.data() + row(k, h); }
  const float* forward_row(int h) const { return forward_.data() + row(0, h); }
  const float* cap_row(double usd) const;
  int threshold_of(double bottleneck) const;
  // What is not exceeded by the bottleneck of a plan that threshold k - 1 excludes.
  double floor_of(int k) const {
    return k == 0 ? least_bottleneck_ : thresholds_[static_cast<std::size_t>(k) - 1];
  }
  void choose_grid(const Target& target);
  void choose_thresholds(const Target& target, int count);
  void store(int k, const PrefixTable& table);
  void offer_plans(int k, const PrefixTable& table, const PlanningProblem& problem, Target& target);

  const DegreeModel& model_;
  std::size_t positions_;
  double least_sum_;
  double least_bottleneck_;
  std::int64_t unit_ = 1;
  int cells_ = 1;
  int usd_levels_ = 1;
  double usd_step_ = 0;
  std::vector<double> thresholds_;  // the last is infinity
  std::vector<float> within_, beyond_;
  std::vector<float> forward_;  // least forward terms of prefixes, [position][cell]
  std::vector<float> caps_;     // [level of constant usd][cell]
};

}  // namespace funcpipe::exact
