#include "planner/plan_sampler.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace funcpipe {

Solution PlanSampler::random() {
  const int layers = problem_.layer_count();
  const auto stages = static_cast<std::size_t>(std::exp(rng_.uniform() * std::log(layers + 0.999)));
  std::set<int> ends{layers};
  while (ends.size() < stages)
    ends.insert(1 + static_cast<int>(index(static_cast<std::size_t>(layers - 1))));

  Solution solution{{}, static_cast<int>(index(problem_.degrees.size()))};
  const bool uniform = index(2) == 0;
  const int option = random_option();
  int first = 0;
  for (const int last : ends) {
    solution.stages.push_back({first, last, uniform ? option : random_option()});
    first = last;
  }
  return solution;
}

Solution PlanSampler::neighbour(Solution solution) {
  for (auto changes = 1 + index(3); changes > 0; --changes) change(solution);
  return solution;
}

void PlanSampler::change(Solution& solution) {
  switch (index(6)) {
    case 0:
      return move_cut(solution);
    case 1:
      return add_cut(solution);
    case 2:
      return remove_cut(solution);
    case 3:
      solution.stages[index(solution.stages.size())].option = random_option();
      return;
    case 4:
      solution.degree = static_cast<int>(index(problem_.degrees.size()));
      return;
    default:
      break;
  }
  const int option = random_option();
  for (auto& stage : solution.stages) stage.option = option;
}

// To anywhere between its neighbours.
void PlanSampler::move_cut(Solution& solution) {
  auto& stages = solution.stages;
  if (stages.size() < 2) return;
  const auto k = index(stages.size() - 1);
  const int first = stages[k].first, last = stages[k + 1].last;
  const int cut = first + 1 + static_cast<int>(index(static_cast<std::size_t>(last - first - 1)));
  stages[k].last = stages[k + 1].first = cut;
}

void PlanSampler::add_cut(Solution& solution) {
  auto& stages = solution.stages;
  const auto k = index(stages.size());
  const int length = stages[k].last - stages[k].first;
  if (length < 2) return;
  auto second = stages[k];
  second.first += 1 + static_cast<int>(index(static_cast<std::size_t>(length - 1)));
  stages[k].last = second.first;
  stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(k) + 1, second);
}

void PlanSampler::remove_cut(Solution& solution) {
  auto& stages = solution.stages;
  if (stages.size() < 2) return;
  const auto k = index(stages.size() - 1);
  stages[k].last = stages[k + 1].last;
  stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(k) + 1);
}

}  // namespace funcpipe
