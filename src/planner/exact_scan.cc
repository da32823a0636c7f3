#include "planner/exact_scan.h"

#include <algorithm>
#include <cmath>

namespace funcpipe::exact {
namespace {

constexpr int kBisections = 12;
constexpr double kNextThreshold = 0.9;  // of the bottleneck found
constexpr int kMaxThresholds = 32;

// Powers of two: of the time without prices, what the largest option costs.
constexpr int kFirstPrice = -7;
constexpr int kLastPrice = 4;

}  // namespace

Scan::Scan(const DegreeModel& model)
    : model_(model),
      windows_(model.options().size()),
      best_(static_cast<std::size_t>(model.layers()) + 1),
      steps_(best_.size()) {}

double Scan::worth(std::size_t j, int h) const {
  const auto& option = model_.options()[j];
  const auto at = static_cast<std::size_t>(h);
  return best_[at] + option.link[at] - option.work[at];
}

void Scan::enter(std::size_t j, int h, const Weights& weights) {
  const auto& option = model_.options()[j];
  const auto at = static_cast<std::size_t>(h);
  if (!option.can_cut[at] || std::isinf(best_[at])) return;
  if (model_.repeats() * option.link[at] > weights.max_bottleneck) return;
  auto& [positions, front] = windows_[j];
  const double worth_here = worth(j, h);
  while (positions.size() > front && worth(j, positions.back()) >= worth_here) positions.pop_back();
  positions.push_back(h);
}

void Scan::leave(std::size_t j, int e, const Weights& weights) {
  const auto& option = model_.options()[j];
  auto& [positions, front] = windows_[j];
  const auto last = static_cast<std::size_t>(e);
  const auto too_long = [&](int h) {
    const double work = option.work[last] - option.work[static_cast<std::size_t>(h)];
    return h < option.first_start[last] || model_.repeats() * work > weights.max_bottleneck;
  };
  while (front < positions.size() && too_long(positions[front])) ++front;
}

bool Scan::run(const Weights& weights) {
  for (auto& window : windows_) window = {};
  std::fill(best_.begin(), best_.end(), PlanningProblem::kNever);
  best_[0] = 0;
  for (int e = 1; e <= model_.layers(); ++e) {
    const auto last = static_cast<std::size_t>(e);
    for (std::size_t j = 0; j < windows_.size(); ++j) {
      const auto& option = model_.options()[j];
      enter(j, e - 1, weights);
      leave(j, e, weights);
      const auto& [positions, front] = windows_[j];
      if (front == positions.size() || !option.can_cut[last]) continue;
      if (model_.repeats() * option.link[last] > weights.max_bottleneck) continue;
      const double sum = worth(j, positions[front]) + option.work[last] + option.link[last] +
                         weights.seconds_per_stage +
                         static_cast<double>(option.units) * weights.seconds_per_unit;
      if (sum >= best_[last]) continue;
      best_[last] = sum;
      steps_[last] = {positions[front], static_cast<int>(j)};
    }
  }
  return std::isfinite(best_.back());
}

Solution Scan::solution() const {
  Solution solution;
  solution.degree = model_.degree();
  for (int e = model_.layers(); e > 0;) {
    const auto& step = steps_[static_cast<std::size_t>(e)];
    solution.stages.push_back({step.from, e, step.option});
    e = step.from;
  }
  std::reverse(solution.stages.begin(), solution.stages.end());
  return solution;
}

double Scan::bottleneck() const {
  double largest = 0;
  for (int e = model_.layers(); e > 0;) {
    const auto& step = steps_[static_cast<std::size_t>(e)];
    const auto& option = model_.options()[static_cast<std::size_t>(step.option)];
    largest = std::max(largest, model_.bottleneck(option, step.from, e));
    e = step.from;
  }
  return largest;
}

namespace {

// No plan's bottleneck is below the result; that of some plan is within a few per cent of it.
double least_bottleneck(Scan& scan, double feasible) {
  double infeasible = 0;
  if (scan.run({.max_bottleneck = 0})) return 0;
  for (int i = 0; i < kBisections; ++i) {
    // Halving first, then closer and closer.
    const double middle = infeasible > 0 ? std::sqrt(infeasible * feasible) : feasible / 2;
    if (scan.run({.max_bottleneck = middle})) {
      feasible = std::min(middle, scan.bottleneck());
    } else {
      infeasible = middle;
    }
  }
  return infeasible;
}

class Offering {
 public:
  Offering(Scan& scan, const PlanningProblem& problem, Target& target)
      : scan_(scan), problem_(problem), target_(target) {}

  void descend(Scan::Weights weights) {
    for (int i = 0; i < kMaxThresholds && scan_.run(weights); ++i) {
      offer();
      weights.max_bottleneck = scan_.bottleneck() * kNextThreshold;
      if (weights.max_bottleneck <= 0) return;
    }
  }

 private:
  void offer() {
    auto solution = scan_.solution();
    if (const auto figures = figures_of(problem_, solution)) target_.offer(solution, *figures);
  }

  Scan& scan_;
  const PlanningProblem& problem_;
  Target& target_;
};

}  // namespace

std::optional<ScanReport> scan(const DegreeModel& model, const PlanningProblem& problem,
                               Target& target) {
  Scan path(model);
  if (!path.run({})) return std::nullopt;
  ScanReport report;
  report.least_sum = path.sum();
  report.least_bottleneck = least_bottleneck(path, path.bottleneck());
  Offering offering(path, problem, target);
  offering.descend({});
  offering.descend({.seconds_per_stage = 1e3 * (report.least_sum + 1)});
  if (!model.price().counted) return report;
  for (int power = kFirstPrice; power <= kLastPrice; ++power) {
    const double seconds = std::ldexp(report.least_sum, power);
    offering.descend({.seconds_per_unit = seconds / static_cast<double>(model.largest_units())});
  }
  return report;
}

}  // namespace funcpipe::exact
