#include "planner/prefix_table.h"

#include <algorithm>
#include <cmath>

namespace funcpipe::exact {
namespace {

constexpr double kInfinity = PlanningProblem::kNever;

// to = min(to, from + add), element by element.
void lower(double* to, const double* from, double add, std::size_t count) {
  for (std::size_t c = 0; c < count; ++c) to[c] = std::min(to[c], from[c] + add);
}

}  // namespace

PrefixTable::PrefixTable(const DegreeModel& model, std::int64_t unit, int cells)
    : model_(model), cells_(static_cast<std::size_t>(cells)) {
  const auto positions = static_cast<std::size_t>(model.layers()) + 1;
  values_.resize(positions * cells_);
  for (const auto& option : model.options()) {
    option_cells_.push_back(static_cast<std::size_t>(option.units / unit));
    Window window;
    window.front.resize(positions * cells_);
    window.back.resize(cells_);
    windows_.push_back(std::move(window));
  }
}

void PrefixTable::fill(double threshold) {
  terms_.clear();
  for (const auto& option : model_.options())
    terms_.push_back({&option.link, &option.work, &option.link});
  threshold_ = threshold;
  with_tail_ = true;
  run();
}

void PrefixTable::fill_forward() {
  terms_.clear();
  for (const auto& option : model_.options())
    terms_.push_back({&option.down, &option.forward, &option.up});
  threshold_ = kInfinity;
  with_tail_ = false;
  run();
}

void PrefixTable::run() {
  std::fill(values_.begin(), values_.end(), kInfinity);
  values_[0] = 0;
  for (auto& window : windows_) {
    window.start = window.middle = window.end = 1;
    std::fill(window.back.begin(), window.back.end(), kInfinity);
  }
  for (int e = 1; e <= model_.layers(); ++e) {
    for (std::size_t j = 0; j < windows_.size(); ++j) {
      const auto& option = model_.options()[j];
      if (e > 1) add_position(j, e - 1);
      drop_positions(j, e);
      if (!may_cut(option, e)) continue;
      add_first_stage(j, e);
      add_later_stages(j, e);
    }
  }
}

bool PrefixTable::may_cut(const OptionModel& option, int position) const {
  const auto at = static_cast<std::size_t>(position);
  return option.can_cut[at] && model_.repeats() * option.link[at] <= threshold_;
}

bool PrefixTable::is_too_long(const OptionModel& option, int h, int e) const {
  const auto first = static_cast<std::size_t>(h), last = static_cast<std::size_t>(e);
  return h < option.first_start[last] ||
         model_.repeats() * (option.work[last] - option.work[first]) > threshold_;
}

double PrefixTable::begin_worth(std::size_t j, int h) const {
  const auto at = static_cast<std::size_t>(h);
  if (!may_cut(model_.options()[j], h)) return kInfinity;
  return (*terms_[j].begin)[at] - (*terms_[j].sum)[at];
}

void PrefixTable::add_position(std::size_t j, int h) {
  auto& window = windows_[j];
  window.end = h + 1;
  const double worth = begin_worth(j, h);
  if (std::isfinite(worth)) lower(window.back.data(), row(h), worth, cells_);
}

void PrefixTable::drop_positions(std::size_t j, int e) {
  auto& window = windows_[j];
  const auto& option = model_.options()[j];
  while (window.start < window.end && is_too_long(option, window.start, e)) {
    if (window.start++ >= window.middle) rebuild_front(j);
  }
}

void PrefixTable::rebuild_front(std::size_t j) {
  auto& window = windows_[j];
  window.middle = window.end;
  std::fill(window.back.begin(), window.back.end(), kInfinity);
  for (int h = window.end - 1; h >= window.start; --h) {
    double* front = window.front.data() + static_cast<std::size_t>(h) * cells_;
    if (h + 1 == window.end) {
      std::fill(front, front + cells_, kInfinity);
    } else {
      std::copy(front + cells_, front + 2 * cells_, front);
    }
    const double worth = begin_worth(j, h);
    if (std::isfinite(worth)) lower(front, row(h), worth, cells_);
  }
}

double PrefixTable::first_stage(std::size_t j, int e) const {
  const auto& option = model_.options()[j];
  const auto last = static_cast<std::size_t>(e);
  const double tail = with_tail_ ? option.tail[last] + option.tail_constant : 0;
  return (*terms_[j].sum)[last] + (*terms_[j].end)[last] + tail;
}

void PrefixTable::add_first_stage(std::size_t j, int e) {
  const auto cell = option_cells_[j];
  if (cell >= cells_ || is_too_long(model_.options()[j], 0, e)) return;
  double& value = values_[static_cast<std::size_t>(e) * cells_ + cell];
  value = std::min(value, first_stage(j, e));
}

void PrefixTable::add_later_stages(std::size_t j, int e) {
  const auto& window = windows_[j];
  const auto skip = option_cells_[j];
  if (window.start == window.end || skip >= cells_) return;
  const auto last = static_cast<std::size_t>(e);
  const double worth = (*terms_[j].sum)[last] + (*terms_[j].end)[last];
  double* to = values_.data() + last * cells_ + skip;
  lower(to, window.back.data(), worth, cells_ - skip);
  if (window.start < window.middle) {
    const auto front = static_cast<std::size_t>(window.start) * cells_;
    lower(to, window.front.data() + front, worth, cells_ - skip);
  }
}

// With stage [h, e) last, either a stage before is the critical one, or this one, whose own gradient
// up is not part of its backward pass.
void PrefixTable::add_critical(std::size_t j, int h, int e, const double* forward) {
  const auto& option = model_.options()[j];
  const auto first = static_cast<std::size_t>(h), last = static_cast<std::size_t>(e);
  const double terms = option.work[last] - option.work[first] + option.link[last];
  const double tail = option.tail[last] - option.tail[first] + option.tail_constant;
  const double before = terms + option.link[first];
  const double own = terms + option.down[first] + tail;
  const auto skip = option_cells_[j];
  const double* from = row(h);
  const double* from_forward = forward + first * cells_;
  double* to = values_.data() + last * cells_ + skip;
  for (std::size_t c = 0; c + skip < cells_; ++c) {
    const double critical = std::max(from[c] + before, from_forward[c] + own);
    to[c] = std::min(to[c], critical);
  }
}

void PrefixTable::fill_critical(const std::vector<double>& forward) {
  std::fill(values_.begin(), values_.end(), kInfinity);
  values_[0] = 0;
  for (int e = 1; e <= model_.layers(); ++e) {
    for (std::size_t j = 0; j < windows_.size(); ++j) {
      const auto& option = model_.options()[j];
      if (!option.can_cut[static_cast<std::size_t>(e)] || option_cells_[j] >= cells_) continue;
      for (int h = option.first_start[static_cast<std::size_t>(e)]; h < e; ++h)
        if (option.can_cut[static_cast<std::size_t>(h)]) add_critical(j, h, e, forward.data());
    }
  }
}

// Walks back by asking which last stage gives the value: sums are repeated in the same order, so
// the nearest is it.
Solution PrefixTable::solution(int cell) const {
  Solution solution;
  solution.degree = model_.degree();
  auto rest = static_cast<std::size_t>(cell);
  for (int e = model_.layers(); e > 0;) {
    StageChoice best;
    double least = kInfinity;
    for (std::size_t j = 0; j < windows_.size(); ++j) {
      const auto& option = model_.options()[j];
      if (option_cells_[j] > rest || !may_cut(option, e)) continue;
      const auto last = static_cast<std::size_t>(e);
      const double end = (*terms_[j].sum)[last] + (*terms_[j].end)[last];
      for (int h = e - 1; h >= 0 && !is_too_long(option, h, e); --h) {
        const double value = h == 0 ? (option_cells_[j] == rest ? first_stage(j, e) : kInfinity)
                                    : row(h)[rest - option_cells_[j]] + begin_worth(j, h) + end;
        if (value < least) {
          least = value;
          best = {h, e, static_cast<int>(j)};
        }
      }
    }
    solution.stages.push_back(best);
    rest -= option_cells_[static_cast<std::size_t>(best.option)];
    e = best.first;
  }
  std::reverse(solution.stages.begin(), solution.stages.end());
  return solution;
}

}  // namespace funcpipe::exact
