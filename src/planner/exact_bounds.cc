#include "planner/exact_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/prefix_table.h"

namespace funcpipe::exact {
namespace {

constexpr std::int64_t kMaxCells = 256;
constexpr int kMaxUsdLevels = 32;
constexpr double kSmallest = 1e-3;  // threshold, of the largest
constexpr float kHuge = 1e30F;      // instead of infinity, so that differences are numbers

float rounded_down(double value) { return static_cast<float>(value * (1 - 2e-7)); }

// Above the cap by more than what rounding can add to the float sums that are compared with it.
float rounded_cap(double cap) {
  return cap < 0 ? -1 : std::min(kHuge, static_cast<float>(std::min(cap, 1e30) * (1 + 6e-7)));
}

// The largest number of units in [0, most] that a plan of this time may have.
std::int64_t largest_units(const Target& target, const Price& price, std::int64_t most,
                           double seconds, double usd) {
  std::int64_t least = 0;
  while (least < most) {
    const auto middle = least + (most - least + 1) / 2;
    if (target.cap(price, static_cast<double>(middle), usd) >= seconds) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace

PrefixBounds::PrefixBounds(const DegreeModel& model, const PlanningProblem& problem,
                           const UsefulRange& range, int thresholds, Target& target)
    : model_(model), range_(range), positions_(static_cast<std::size_t>(model.layers()) + 1) {
  choose_grid(target);
  choose_thresholds(target, thresholds);
  const auto cells = static_cast<std::size_t>(cells_);
  within_.resize(thresholds_.size() * positions_ * cells);
  beyond_.resize(within_.size());
  forward_.resize(positions_ * cells);
  PrefixTable table(model, unit_, cells_);
  table.fill_forward();
  std::transform(table.values().begin(), table.values().end(), forward_.begin(), rounded_down);
  const auto forward_values = table.values();
  table.fill_critical(forward_values);
  critical_.resize(forward_.size());
  std::transform(table.values().begin(), table.values().end(), critical_.begin(), rounded_down);
  for (int h = 0; h <= model.layers(); ++h) {
    const auto* seconds = forward_row(h);
    const auto* first = std::find_if(seconds, seconds + cells_, [](float s) { return s < kHuge; });
    first_cell_.push_back(static_cast<int>(first - seconds));
  }
  for (int k = threshold_count() - 1; k >= 0; --k) {
    table.fill(thresholds_[static_cast<std::size_t>(k)]);
    store(k, table);
    offer_plans(k, table, problem, target);
  }
  update_caps(target);
}

void PrefixBounds::choose_grid(const Target& target) {
  const auto& price = model_.price();
  if (price.counted) {
    const auto most = std::min(range_.most_units, model_.layers() * model_.largest_units());
    const auto useful =
        largest_units(target, price, most, range_.least_seconds, model_.least_stage_usd());
    unit_ = useful / kMaxCells + 1;
    cells_ = static_cast<int>(useful / unit_) + 1;
  }
  if (model_.has_constants()) {
    usd_step_ = model_.least_stage_usd() + model_.cut_usd();
    usd_levels_ = usd_step_ > 0 ? kMaxUsdLevels : 1;
  }
}

// Geometric, from the least bottleneck there is to the largest that may be of use.
void PrefixBounds::choose_thresholds(const Target& target, int count) {
  const double cap = target.cap(model_.price(), static_cast<double>(model_.least_units()),
                                model_.least_stage_usd());
  const double most = std::min(cap - range_.least_sum, range_.most_bottleneck);
  if (std::isfinite(most) && most > range_.least_bottleneck) {
    const double least = std::max(range_.least_bottleneck, most * kSmallest);
    for (int k = 1; k < count; ++k)
      thresholds_.push_back(least * std::pow(most / least, static_cast<double>(k) / count));
  }
  thresholds_.push_back(std::max(most, range_.least_bottleneck) * (1 + kTolerance));
}

void PrefixBounds::store(int k, const PrefixTable& table) {
  const auto size = table.values().size();
  const auto* values = table.values().data();
  auto* within = within_.data() + row(k, 0);
  auto* beyond = beyond_.data() + row(k, 0);
  const double floor = floor_of(k);
  for (std::size_t i = 0; i < size; ++i) {
    within[i] = rounded_down(values[i]);
    beyond[i] = rounded_down(values[i] + floor);
  }
  if (k + 1 == threshold_count()) return;
  const auto* next = beyond_.data() + row(k + 1, 0);
  for (std::size_t i = 0; i < size; ++i) beyond[i] = std::min(beyond[i], next[i]);
}

void PrefixBounds::offer_plans(int k, const PrefixTable& table, const PlanningProblem& problem,
                               Target& target) {
  const double* seconds = table.row(model_.layers());
  for (int c = 0; c < cells_; ++c) {
    const double units = static_cast<double>(c * unit_);
    if (std::isinf(seconds[c])) continue;
    if (seconds[c] + floor_of(k) > target.cap(model_.price(), units, model_.least_stage_usd()))
      continue;
    const auto solution = table.solution(c);
    if (const auto figures = figures_of(problem, solution)) target.offer(solution, *figures);
  }
}

void PrefixBounds::update_caps(const Target& target) {
  caps_.clear();
  for (int level = 0; level < usd_levels_; ++level) {
    for (int c = 0; c < cells_; ++c) {
      const double units = static_cast<double>(c * unit_);
      caps_.push_back(rounded_cap(target.cap(model_.price(), units, level * usd_step_)));
    }
  }
  totals_ = {cells_, -1};
  for (int c = 0; c < cells_; ++c) {
    if (!is_useful(beyond_row(0, model_.layers()), 0, c)) continue;
    totals_.first = std::min(totals_.first, c);
    totals_.last = c;
  }
}

bool PrefixBounds::is_useful(const float* seconds, float more, int cell) const {
  return seconds[cell] + more <= cap_row(model_.least_stage_usd())[cell];
}

std::optional<UsefulRange> PrefixBounds::useful_range() const {
  if (totals_.last < 0) return std::nullopt;
  auto range = range_;
  // The stages of a plan of few cells may be rounded down from any number of units, but for unit 1.
  if (unit_ == 1) range.most_units = totals_.last;
  const float* seconds = beyond_row(0, model_.layers());
  range.least_seconds = kHuge;
  for (int c = totals_.first; c <= totals_.last; ++c)
    range.least_seconds = std::min<double>(range.least_seconds, seconds[c]);
  range.least_seconds = std::max(range.least_seconds, range_.least_seconds);
  int first = -1, last = -1;  // thresholds between which useful plans lie
  for (int k = 0; k < threshold_count(); ++k) {
    const float* within = within_row(k, model_.layers());
    for (int c = totals_.first; c <= totals_.last; ++c) {
      if (!is_useful(within, static_cast<float>(floor_of(k)), c)) continue;
      if (first < 0) first = k;
      last = k;
    }
  }
  if (first < 0) return std::nullopt;
  range.least_bottleneck = floor_of(first);
  range.most_bottleneck =
      std::min(range.most_bottleneck, thresholds_[static_cast<std::size_t>(last)]);
  return range;
}

const float* PrefixBounds::cap_row(double usd) const {
  const int level =
      usd_levels_ == 1 ? 0 : std::min(usd_levels_ - 1, static_cast<int>(usd / usd_step_));
  return caps_.data() + level * cells_;
}

int PrefixBounds::threshold_of(double bottleneck) const {
  return static_cast<int>(std::lower_bound(thresholds_.begin(), thresholds_.end(), bottleneck) -
                          thresholds_.begin());
}

// Of the prefix of [0, h), so that label and prefix together make a useful total.
PrefixBounds::Cells PrefixBounds::useful_cells(int h, const Label& label) const {
  return {std::max(totals_.first - label.cells, first_cell_[static_cast<std::size_t>(h)]),
          totals_.last - label.cells};
}

PrefixBounds::Verdict PrefixBounds::judge(int h, const Label& label) const {
  Verdict verdict;
  const auto cells = useful_cells(h, label);
  const double bottleneck = label.x + label.y;
  const int k = threshold_of(bottleneck);
  if (cells.first > cells.last || k == threshold_count()) return verdict;
  const bool last = k + 1 == threshold_count();
  const auto from_within = static_cast<float>(label.q + std::max(bottleneck, floor_of(k)));
  const auto from_beyond = last ? kHuge : static_cast<float>(label.q);
  const auto from_forward = static_cast<float>(label.p + label.x);
  const auto from_critical = static_cast<float>(label.q + bottleneck);
  const float* within = within_row(k, h);
  const float* beyond = beyond_row(last ? k : k + 1, h);
  const float* forward = forward_row(h);
  const float* critical = critical_row(h);
  const float* caps = cap_row(label.usd + model_.least_stage_usd()) + label.cells;
  float room = -kHuge, least_seconds = kHuge, least_cell = kHuge;
#pragma omp simd reduction(max : room) reduction(min : least_seconds, least_cell)
  for (int c = cells.first; c <= cells.last; ++c) {
    const float by_sum = std::min(within[c] + from_within, beyond[c] + from_beyond);
    const float by_stage = std::max(forward[c] + from_forward, critical[c] + from_critical);
    const float seconds = std::max(by_sum, by_stage);
    const float here = caps[c] - seconds;
    const bool useful = here >= 0;
    room = std::max(room, here);
    least_seconds = std::min(least_seconds, useful ? seconds : kHuge);
    least_cell = std::min(least_cell, useful ? static_cast<float>(c) : kHuge);
  }
  verdict.room = room;
  if (room < 0) return verdict;
  verdict.least_seconds = least_seconds * (1 - 1e-6F);
  verdict.least_units = label.units + static_cast<std::int64_t>(least_cell) * unit_;
  return verdict;
}

double PrefixBounds::largest_bottleneck(int h, const Label& label) const {
  const auto cells = useful_cells(h, label);
  const float* within = within_row(threshold_count() - 1, h);
  const float* caps = cap_row(label.usd + model_.least_stage_usd()) + label.cells;
  const auto from_within = static_cast<float>(label.q);
  float room = -kHuge;
#pragma omp simd reduction(max : room)
  for (int c = cells.first; c <= cells.last; ++c)
    room = std::max(room, caps[c] - (within[c] + from_within));
  return std::min<double>(room, thresholds_.back());
}

}  // namespace funcpipe::exact
