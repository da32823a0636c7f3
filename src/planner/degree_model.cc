#include "planner/degree_model.h"

#include <cmath>
#include <numeric>

#include "planner/evaluate.h"

namespace funcpipe::exact {
namespace {

const PlanningProblem::Degree& degree_of(const PlanningProblem& problem, int degree) {
  return problem.degrees[static_cast<std::size_t>(degree)];
}

bool runs(const PlanningProblem& problem, std::size_t option, std::size_t layer) {
  return std::isfinite(problem.forward[option][layer]) &&
         std::isfinite(problem.backward[option][layer]) &&
         std::isfinite(problem.update[option][layer]);
}

}  // namespace

DegreeModel::DegreeModel(const PlanningProblem& problem, int degree, std::int64_t divisor,
                         bool counted)
    : degree_(degree),
      layers_(problem.layer_count()),
      replicas_(degree_of(problem, degree).replicas),
      repeats_(degree_of(problem, degree).micro_batches - 1),
      price_{problem.usd_per_unit_second * static_cast<double>(divisor) * replicas_, counted},
      cut_usd_(counted ? problem.cut_usd : 0) {
  for (int j = 0; j < problem.option_count(); ++j) add_option(problem, j, divisor);
  const auto by_usd = [](const auto& a, const auto& b) { return a.usd < b.usd; };
  const auto by_units = [](const auto& a, const auto& b) { return a.units < b.units; };
  const auto [cheap, dear] = std::minmax_element(options_.begin(), options_.end(), by_usd);
  const auto [small, large] = std::minmax_element(options_.begin(), options_.end(), by_units);
  least_stage_usd_ = cheap->usd;
  has_constants_ = cut_usd_ > 0 || dear->usd > 0;
  least_units_ = small->units;
  largest_units_ = large->units;
  count_stages();
}

void DegreeModel::add_option(const PlanningProblem& problem, int option, std::int64_t divisor) {
  const auto j = static_cast<std::size_t>(option);
  const auto& degree = degree_of(problem, degree_);
  OptionModel model;
  if (price_.counted) {
    model.units = problem.options[j].price_units / divisor;
    model.usd = degree.stage_usd[j];
  }
  model.tail_constant = degree.sync_seconds[j];
  add_sums(problem, j, model);
  add_links(problem, j, model);
  add_windows(problem, option, model);
  options_.push_back(std::move(model));
}

void DegreeModel::add_sums(const PlanningProblem& problem, std::size_t j,
                           OptionModel& model) const {
  const auto& degree = degree_of(problem, degree_);
  double forward = 0, backward = 0, tail = 0;
  for (std::size_t i = 0;; ++i) {
    model.forward.push_back(forward);
    model.backward.push_back(backward);
    model.work.push_back(forward + backward);
    model.tail.push_back(tail);
    if (i == problem.layers.size()) return;
    if (!runs(problem, j, i)) continue;
    forward += problem.forward[j][i];
    backward += problem.backward[j][i];
    tail += problem.update[j][i] + degree.sync_seconds_per_byte[j] * problem.layers[i].sync_bytes;
  }
}

void DegreeModel::add_links(const PlanningProblem& problem, std::size_t j,
                            OptionModel& model) const {
  const auto positions = static_cast<std::size_t>(layers_) + 1;
  model.up.assign(positions, 0);
  model.down.assign(positions, 0);
  model.link.assign(positions, 0);
  model.can_cut.assign(positions, 1);
  for (std::size_t i = 1; i + 1 < positions; ++i) {
    model.can_cut[i] = std::isfinite(problem.up[j][i]) && std::isfinite(problem.down[j][i]);
    if (!model.can_cut[i]) continue;
    model.up[i] = problem.up[j][i];
    model.down[i] = problem.down[j][i];
    model.link[i] = model.up[i] + model.down[i];
  }
}

// A stage that fits still fits when its first layer is taken away, so the longest stages that end
// at successive positions begin at non-decreasing ones: two indices walk over the layers.
void DegreeModel::add_windows(const PlanningProblem& problem, int j, OptionModel& model) const {
  const auto& degree = degree_of(problem, degree_);
  const auto option = static_cast<std::size_t>(j);
  const double limit = problem.options[option].memory_bytes;
  int start = 0;
  model.first_start.push_back(0);
  for (int e = 1; e <= layers_; ++e) {
    if (!runs(problem, option, static_cast<std::size_t>(e) - 1)) start = e;
    while (start < e && stage_memory(problem, {start, e, j}, degree) > limit) ++start;
    model.first_start.push_back(start);
  }
}

void DegreeModel::count_stages() {
  least_stages_.assign(static_cast<std::size_t>(layers_) + 1, layers_ + 1);
  least_stages_[0] = 0;
  for (int e = 1; e <= layers_; ++e) {
    const auto last = static_cast<std::size_t>(e);
    for (const auto& option : options_) {
      if (!option.can_cut[last]) continue;
      for (auto h = static_cast<std::size_t>(option.first_start[last]); h < last; ++h)
        if (option.can_cut[h])
          least_stages_[last] = std::min(least_stages_[last], least_stages_[h] + 1);
    }
  }
}

std::int64_t price_divisor(const PlanningProblem& problem) {
  std::int64_t divisor = 0;
  for (const auto& option : problem.options) divisor = std::gcd(divisor, option.price_units);
  return divisor;
}

}  // namespace funcpipe::exact
