#include "planner/exact_target.h"

#include <algorithm>
#include <cmath>

namespace funcpipe::exact {
namespace {

constexpr double kInfinity = PlanningProblem::kNever;
constexpr double kNothing = -1;

// Just more, and just less, than equal.
double including(double cap) { return cap * (1 + kTolerance); }
double excluding(double cap) { return cap * (1 - kTolerance); }

}  // namespace

double limit_cap(const Objective& limits, const Price& price, double units, double usd) {
  const double cap = including(limits.max_seconds);
  if (!price.counted || std::isinf(limits.max_usd)) return cap;
  const double per_second = price.usd_per_unit_second * units;
  const double rest = including(limits.max_usd) - usd;
  if (rest < 0) return kNothing;
  return per_second > 0 ? std::min(cap, rest / per_second) : cap;
}

double BestTarget::weight(const Price& price, double units) const {
  return objective_.usd_weight * price.usd_per_unit_second * units + objective_.seconds_weight;
}

double BestTarget::value(const Price& price, double seconds, double units, double usd) const {
  return seconds * weight(price, units) + objective_.usd_weight * usd;
}

double BestTarget::cap(const Price& price, double units, double usd) const {
  return std::min(value_cap(price, units, usd), limit_cap(objective_, price, units, usd));
}

// Plans compare by value, then seconds, then usd. Up to `below` seconds a plan's value is less than
// the best so far; up to `equal` it is the same, and then the plan must be faster, or as fast and
// cheaper.
double BestTarget::value_cap(const Price& price, double units, double usd) const {
  if (!solution_) return kInfinity;
  const double best = objective_.value(figures_.usd, figures_.seconds);
  const double below = seconds_for(excluding(best), price, units, usd);
  const double equal = seconds_for(including(best), price, units, usd);
  const double cost = figures_.seconds * price.usd_per_unit_second * units + usd;
  const bool cheaper = price.counted && clearly_less(cost, figures_.usd);
  const double tie = cheaper ? including(figures_.seconds) : excluding(figures_.seconds);
  return std::max(below, std::min(equal, tie));
}

double BestTarget::seconds_for(double value, const Price& price, double units, double usd) const {
  const double rest = value - objective_.usd_weight * usd;
  if (rest < 0) return kNothing;
  const double per_second = weight(price, units);
  return per_second > 0 ? rest / per_second : kInfinity;
}

void BestTarget::offer(const Solution& solution, const Figures& figures) {
  if (!within_limits(objective_, figures)) return;
  if (solution_ && compare(objective_, figures, figures_) >= 0) return;
  solution_ = solution;
  figures_ = figures;
  changed();
}

std::optional<Target::Exchange> BestTarget::exchange(const Price& price) const {
  if (!solution_ || !price.counted || objective_.usd_weight <= 0) return std::nullopt;
  Exchange result;
  result.value = objective_.value(figures_.usd, figures_.seconds);
  result.weight_per_unit = objective_.usd_weight * price.usd_per_unit_second;
  result.weight = objective_.seconds_weight;
  result.may_be_slower = std::isinf(objective_.max_seconds);
  result.may_cost_more = std::isinf(objective_.max_usd) || objective_.seconds_weight == 0;
  return result;
}

// Points stand by increasing seconds and decreasing usd. A plan that is slower than a point must be
// cheaper than it. Among the points i that cost no more than a plan of their own time would, the
// fastest, say k, is the first that covers plans of these units:
//
//   usd |  p0
//       |       p1         / plans of these units
//       |             p2 /
//       |              /   p3       k = 2: p2 lies below the line, p1 above
//       +------------------------- seconds
//
// Plans from max(seconds of k, where the line meets the cost of k - 1 ... ) on are covered.
double FrontierTarget::cap(const Price& price, double units, double usd) const {
  const double limit = limit_cap(limits_, price, units, usd);
  const double per_second = price.usd_per_unit_second * units;
  const auto above = [&](const Point& point) {
    return point.figures.usd > point.figures.seconds * per_second + usd;
  };
  const auto k = std::partition_point(points_.begin(), points_.end(), above);
  double cap = limit;
  if (k != points_.end()) cap = std::min(cap, excluding(k->figures.seconds));
  if (k != points_.begin() && per_second > 0) {
    const double meets = (excluding(std::prev(k)->figures.usd) - usd) / per_second;
    cap = std::min(cap, meets);
  }
  return cap;
}

void FrontierTarget::offer(const Solution& solution, const Figures& figures) {
  if (!within_limits(limits_, figures)) return;
  const auto covers_it = [&](const Point& point) { return covers(point.figures, figures); };
  if (std::any_of(points_.begin(), points_.end(), covers_it)) return;
  std::erase_if(points_, [&](const Point& point) { return covers(figures, point.figures); });
  const auto slower = [&](const Point& point) { return point.figures.seconds > figures.seconds; };
  points_.insert(std::find_if(points_.begin(), points_.end(), slower), {solution, figures});
  changed();
}

}  // namespace funcpipe::exact
