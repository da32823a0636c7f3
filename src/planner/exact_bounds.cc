#include "planner/exact_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/exact_scan.h"
#include "planner/prefix_table.h"

namespace funcpipe::exact {
namespace {

constexpr std::int64_t kMaxCells = 256;
constexpr int kMaxUsdLevels = 32;
constexpr float kHuge = 1e30F;  // instead of infinity, so that differences are numbers

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
                           const ScanReport& report, int thresholds, Target& target)
    : model_(model),
      positions_(static_cast<std::size_t>(model.layers()) + 1),
      least_sum_(report.least_sum),
      least_bottleneck_(report.least_bottleneck) {
  choose_grid(target);
  choose_thresholds(target, thresholds);
  const auto cells = static_cast<std::size_t>(cells_);
  within_.resize(thresholds_.size() * positions_ * cells);
  beyond_.resize(within_.size());
  forward_.resize(positions_ * cells);
  PrefixTable table(model, unit_, cells_);
  table.fill_forward();
  std::transform(table.values().begin(), table.values().end(), forward_.begin(), rounded_down);
  for (int k = static_cast<int>(thresholds_.size()) - 1; k >= 0; --k) {
    table.fill(thresholds_[static_cast<std::size_t>(k)]);
    store(k, table);
    offer_plans(k, table, problem, target);
  }
  update_caps(target);
}

void PrefixBounds::choose_grid(const Target& target) {
  const auto& price = model_.price();
  if (price.counted) {
    const double usd = model_.least_stage_usd();
    const auto most = largest_units(target, price, model_.layers() * model_.largest_units(),
                                    least_sum_ + least_bottleneck_, usd);
    unit_ = most / kMaxCells + 1;
    cells_ = static_cast<int>(most / unit_) + 1;
  }
  if (model_.has_constants()) {
    usd_step_ = model_.least_stage_usd() + model_.cut_usd();
    usd_levels_ = usd_step_ > 0 ? kMaxUsdLevels : 1;
  }
}

// Geometric, from the least bottleneck there is to the largest that may be of use.
void PrefixBounds::choose_thresholds(const Target& target, int count) {
  const double usd = model_.least_stage_usd();
  const double cap = target.cap(model_.price(), static_cast<double>(model_.least_units()), usd);
  const double most = std::min(cap - least_sum_, model_.repeats() * least_sum_ * 8);
  if (least_bottleneck_ > 0 && most > least_bottleneck_) {
    const double ratio = std::pow(most / least_bottleneck_, 1.0 / count);
    double threshold = least_bottleneck_;
    for (int k = 0; k + 1 < count; ++k) thresholds_.push_back(threshold *= ratio);
  }
  thresholds_.push_back(PlanningProblem::kNever);
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
  if (k + 1 == static_cast<int>(thresholds_.size())) return;
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

PrefixBounds::Verdict PrefixBounds::judge(int h, const Label& label) const {
  Verdict verdict;
  const auto used = label.units / unit_;
  if (used >= cells_) return verdict;
  const int cells = cells_ - static_cast<int>(used);
  const double bottleneck = label.x + label.y;
  const int k = threshold_of(bottleneck);
  const auto from_within = static_cast<float>(label.q + std::max(bottleneck, floor_of(k)));
  const bool last = k + 1 == static_cast<int>(thresholds_.size());
  const auto from_beyond = last ? kHuge : static_cast<float>(label.q);
  const auto from_forward = static_cast<float>(label.p + label.x);
  const float* within = within_row(k, h);
  const float* beyond = beyond_row(last ? k : k + 1, h);
  const float* forward = forward_row(h);
  const float* caps = cap_row(label.usd + model_.least_stage_usd()) + used;
  float room = -kHuge, least_seconds = kHuge, least_cell = kHuge;
#pragma omp simd reduction(max : room) reduction(min : least_seconds, least_cell)
  for (int c = 0; c < cells; ++c) {
    const float by_sum = std::min(within[c] + from_within, beyond[c] + from_beyond);
    const float seconds = std::max(by_sum, forward[c] + from_forward);
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
  const auto used = label.units / unit_;
  if (used >= cells_) return -1;
  const int cells = cells_ - static_cast<int>(used);
  const float* within = within_row(static_cast<int>(thresholds_.size()) - 1, h);
  const float* caps = cap_row(label.usd + model_.least_stage_usd()) + used;
  const auto from_within = static_cast<float>(label.q);
  float room = -kHuge;
#pragma omp simd reduction(max : room)
  for (int c = 0; c < cells; ++c) room = std::max(room, caps[c] - (within[c] + from_within));
  return room;
}

}  // namespace funcpipe::exact
