#include "planner/exact_driver.h"

#include <algorithm>

#include "planner/exact_bounds.h"

namespace funcpipe::exact {
namespace {

constexpr std::size_t kBeam = 24;
constexpr int kCoarse = 8;  // thresholds of the first tables of a degree

// Thresholds of the tables that the exact pass uses: as many as pay off.
int fine_thresholds(int layers) { return std::clamp(layers / 4, 4, 64); }

}  // namespace

Driver::Driver(const PlanningProblem& problem, std::int64_t max_functions, bool counted,
               double least_seconds)
    : problem_(problem),
      max_functions_(max_functions),
      counted_(counted),
      least_seconds_(least_seconds) {}

void Driver::scan(Target& target, Watch& watch) {
  const auto divisor = price_divisor(problem_);
  for (int d = 0; d < static_cast<int>(problem_.degrees.size()); ++d) {
    Degree degree;
    degree.model = std::make_unique<DegreeModel>(problem_, d, divisor, counted_);
    degree.max_stages = max_functions_ / degree.model->replicas();
    if (degree.model->least_stages().back() >
        std::min<std::int64_t>(degree.max_stages, degree.model->layers()))
      continue;
    if (const auto report = exact::scan(*degree.model, problem_, target)) {
      degree.range.least_sum = report->least_sum;
      degree.range.least_bottleneck = report->least_bottleneck;
      degree.range.least_seconds =
          std::max(least_seconds_, report->least_sum + report->least_bottleneck);
      degrees_.push_back(std::move(degree));
    }
  }
  (void)watch;
}

bool Driver::run(Target& target, Watch& watch) {
  bool complete = true;
  for (auto& degree : degrees_) {
    degree.done = run(degree, target, watch);
    complete = complete && degree.done;
  }
  return complete;
}

bool Driver::run(Degree& degree, Target& target, Watch& watch) {
  const int fine = fine_thresholds(degree.model->layers());
  for (const int thresholds : {std::min(kCoarse, fine), std::min(3 * kCoarse, fine), fine}) {
    if (watch.is_over()) return false;
    PrefixBounds bounds(*degree.model, problem_, degree.range, thresholds, target);
    const auto range = bounds.useful_range();
    if (!range) return true;
    degree.range = *range;
    degree.unit = bounds.unit();
    degree.least_seconds.clear();
    for (int c = 0; c < bounds.cells(); ++c)
      degree.least_seconds.push_back(bounds.least_seconds(c));
    if (thresholds < fine) continue;
    Search search(*degree.model, problem_, bounds, target, watch);
    bool complete = search.run({degree.max_stages, kBeam});
    if (!complete) complete = search.run({degree.max_stages});
    explored_ += search.explored();
    return complete;
  }
  return false;
}

double Driver::value_bound(const BestTarget& target) const {
  double bound = target.solution()
                     ? target.objective().value(target.figures().usd, target.figures().seconds)
                     : PlanningProblem::kNever;
  for (const auto& degree : degrees_)
    if (!degree.done) bound = std::min(bound, value_bound(degree, target));
  return bound;
}

double Driver::value_bound(const Degree& degree, const BestTarget& target) const {
  const auto& model = *degree.model;
  const double usd = model.least_stage_usd();
  if (degree.least_seconds.empty()) {
    return target.value(model.price(), degree.range.least_seconds,
                        static_cast<double>(model.least_units()), usd);
  }
  double bound = PlanningProblem::kNever;
  for (std::size_t c = 0; c < degree.least_seconds.size(); ++c) {
    const auto units = static_cast<double>(static_cast<std::int64_t>(c) * degree.unit);
    bound = std::min(bound, target.value(model.price(), degree.least_seconds[c], units, usd));
  }
  return bound;
}

}  // namespace funcpipe::exact
