#include "planner/brute_force.h"

#include <algorithm>

namespace funcpipe {
namespace {

class Enumeration {
 public:
  explicit Enumeration(const PlanningProblem& problem) : problem_(problem) {}

  std::vector<Figures> run() {
    for (std::size_t d = 0; d < problem_.degrees.size(); ++d) {
      solution_.degree = static_cast<int>(d);
      extend(0);
    }
    return std::move(plans_);
  }

 private:
  void extend(int first) {
    if (first == problem_.layer_count()) {
      if (const auto figures = figures_of(problem_, solution_)) plans_.push_back(*figures);
      return;
    }
    for (int last = first + 1; last <= problem_.layer_count(); ++last) {
      for (int option = 0; option < problem_.option_count(); ++option) {
        solution_.stages.push_back({first, last, option});
        extend(last);
        solution_.stages.pop_back();
      }
    }
  }

  const PlanningProblem& problem_;
  Solution solution_;
  std::vector<Figures> plans_;
};

}  // namespace

std::vector<Figures> enumerate_plans(const PlanningProblem& problem) {
  return Enumeration(problem).run();
}

std::optional<Figures> brute_force_best(const std::vector<Figures>& plans,
                                        const Objective& objective) {
  const Figures* best = nullptr;
  for (const auto& plan : plans)
    if (within_limits(objective, plan) && (!best || compare(objective, plan, *best) < 0))
      best = &plan;
  return best ? std::optional(*best) : std::nullopt;
}

std::vector<Figures> brute_force_frontier(const std::vector<Figures>& plans,
                                          const Objective& limits) {
  std::vector<Figures> sorted;
  for (const auto& plan : plans)
    if (within_limits(limits, plan)) sorted.push_back(plan);
  std::sort(sorted.begin(), sorted.end(), [](const Figures& a, const Figures& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.usd < b.usd;
  });
  std::vector<Figures> frontier;
  for (const auto& plan : sorted) {
    if (!frontier.empty() && covers(frontier.back(), plan)) continue;
    // Equal in time but for rounding, and cheaper.
    while (!frontier.empty() && covers(plan, frontier.back())) frontier.pop_back();
    frontier.push_back(plan);
  }
  return frontier;
}

}  // namespace funcpipe
