// Least times of all prefixes by the price units they cost: the dynamic programme behind the bounds.
// Internal to the exact solver.
//
// Position by position, a prefix ends with a stage [h, i) of option j, whose worth splits into a part
// of h and a part of i, so that for each option the best h is a minimum over a window of positions
// that only moves forward (memory and threshold both allow less when a stage grows):
//
//   value[i][c + units_j] = min over h in window of (value[h][c] + link_j[h] - work_j[h])
//                           + work_j[i] + link_j[i]
//
// The minimum is kept for all c at once by two stacks: suffix minima of the older positions,
// and one running minimum of the younger.
//
//   positions   start ......... middle ........ end
//               front[start]  = min  |  back = min      window = min(front[start], back)
#pragma once

#include <cstdint>
#include <vector>

#include "planner/degree_model.h"

namespace funcpipe::exact {

class PrefixTable {
 public:
  // Units are counted in cells of `unit`, rounded down for each stage; prefixes of `cells` or more
  // are left out.
  PrefixTable(const DegreeModel& model, std::int64_t unit, int cells);

  // Of prefixes whose stages have bottlenecks of at most `threshold`: work and links of all stages,
  // and the tail of the first.
  void fill(double threshold);
  // Forward terms only, whatever the bottlenecks.
  void fill_forward();
  // Forward terms, and the backward terms and tail of the stage whose backward pass ends last, if all
  // terms counted once: max over k of (sum of forward + sum of backward of k.. + tail(k)).
  // `forward`: as fill_forward() leaves it. O(L^2 J cells).
  void fill_critical(const std::vector<double>& forward);

  // [position][cell], infinity where there is none.
  const std::vector<double>& values() const { return values_; }
  const double* row(int position) const {
    return values_.data() + static_cast<std::size_t>(position) * cells_;
  }
  // The plan behind row(layers)[cell], which must be finite.
  Solution solution(int cell) const;

 private:
  // What a fill adds up, by option: a stage [h, e) takes begin[h] + (sum[e] - sum[h]) + end[e].
  struct Terms {
    const std::vector<double>* begin;
    const std::vector<double>* sum;
    const std::vector<double>* end;
  };
  // The window of one option: the minimum over positions [start, end), for all cells.
  struct Window {
    int start = 1, middle = 1, end = 1;
    std::vector<double> front;  // [position][cell], of [start, middle)
    std::vector<double> back;   // [cell], of [middle, end)
  };

  void run();
  void add_critical(std::size_t j, int h, int e, const double* forward);
  void add_position(std::size_t j, int h);
  void drop_positions(std::size_t j, int e);
  void rebuild_front(std::size_t j);
  void add_first_stage(std::size_t j, int e);
  void add_later_stages(std::size_t j, int e);
  bool may_cut(const OptionModel& option, int position) const;
  bool is_too_long(const OptionModel& option, int h, int e) const;
  double begin_worth(std::size_t j, int h) const;
  double first_stage(std::size_t j, int e) const;

  const DegreeModel& model_;
  const std::size_t cells_;
  std::vector<std::size_t> option_cells_;
  std::vector<double> values_;
  std::vector<Terms> terms_;
  std::vector<Window> windows_;
  double threshold_ = 0;
  bool with_tail_ = true;
};

}  // namespace funcpipe::exact
