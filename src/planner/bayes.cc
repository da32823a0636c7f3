#include "planner/bayes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <Eigen/Dense>

#include "base/error.h"
#include "base/units.h"
#include "planner/evaluate.h"
#include "planner/gaussian_process.h"
#include "planner/incumbent.h"
#include "planner/plan_sampler.h"

namespace funcpipe {
namespace {

constexpr int kDepths = 8;
constexpr std::size_t kParents = 5;  // best plans whose neighbours are candidates

double share(std::size_t index, std::size_t count) {
  return count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 0;
}

// Plans as points.
class Embedding {
 public:
  explicit Embedding(const PlanningProblem& problem) : problem_(problem) {
    std::vector<double> work(problem.layers.size());
    for (std::size_t i = 0; i < work.size(); ++i) work[i] = computation(i);
    std::partial_sum(work.begin(), work.end(), work.begin());
    for (int depth = 0; depth < kDepths; ++depth) {
      const double before = work.back() * (depth + 0.5) / kDepths;
      const auto layer = std::lower_bound(work.begin(), work.end() - 1, before);
      layers_.push_back(static_cast<int>(layer - work.begin()));
    }
  }

  Eigen::VectorXd operator()(const Solution& solution) const {
    const auto& stages = solution.stages;
    Eigen::VectorXd point(2 + 2 * kDepths);
    point[0] = share(static_cast<std::size_t>(solution.degree), problem_.degrees.size());
    point[1] = std::log(stages.size()) / std::log(problem_.layers.size() + 1);
    std::size_t k = 0;
    for (int depth = 0; depth < kDepths; ++depth) {
      while (stages[k].last <= layers_[static_cast<std::size_t>(depth)]) ++k;
      const auto option = static_cast<std::size_t>(stages[k].option);
      point[2 + 2 * depth] = share(option, problem_.options.size());
      point[3 + 2 * depth] = share(k, stages.size());
    }
    return point;
  }

 private:
  // At an option where the layer runs.
  double computation(std::size_t layer) const {
    for (std::size_t j = problem_.options.size(); j-- > 0;) {
      const double seconds = problem_.forward[j][layer] + problem_.backward[j][layer];
      if (std::isfinite(seconds)) return seconds;
    }
    return 0;
  }

  const PlanningProblem& problem_;
  std::vector<int> layers_;  // at equal shares of the computation
};

// How far a plan is from fitting and from the limits; 0: it is within all.
double violation(const PlanningProblem& problem, const Objective& objective,
                 const Solution& solution) {
  const auto over = [](double value, double limit) {
    return value > limit ? std::min(value / limit - 1, 1e3) : 0;
  };
  const auto evaluation = evaluate(problem, solution);
  const auto& degree = problem.degrees[static_cast<std::size_t>(solution.degree)];
  double sum = over(evaluation.seconds, objective.max_seconds) +
               over(evaluation.usd, objective.max_usd) +
               over(static_cast<double>(solution.stages.size()) * degree.replicas,
                    static_cast<double>(objective.max_functions));
  for (std::size_t k = 0; k < solution.stages.size(); ++k) {
    const auto option = static_cast<std::size_t>(solution.stages[k].option);
    sum += over(evaluation.stages[k].memory_bytes, problem.options[option].memory_bytes);
  }
  return sum;
}

class BayesSearch {
 public:
  BayesSearch(const PlanningProblem& problem, const Objective& objective,
              const BayesOptions& options)
      : problem_(problem),
        objective_(objective),
        options_(options),
        embed_(problem),
        sampler_(problem, options.seed),
        best_(problem, objective) {}

  SolverResult run() {
    for (int i = 0; i < options_.evaluations; ++i) {
      const auto plan = i < options_.initial ? any_plan() : most_promising();
      if (!plan) break;  // a problem so small that nothing new turns up
      observe(*plan);
    }
    return best_.result();
  }

 private:
  struct Observation {
    Solution plan;
    Eigen::VectorXd point;
    double value = 0;      // logarithm of the objective, of a plan within the limits
    double violation = 0;  // > 0: of one that is not
  };

  static std::vector<int> key(const Solution& plan) {
    std::vector<int> result{plan.degree};
    for (const auto& stage : plan.stages) result.insert(result.end(), {stage.last, stage.option});
    return result;
  }

  bool is_new(const Solution& plan) const { return !seen_.contains(key(plan)); }

  std::optional<Solution> any_plan() {
    for (int attempt = 0; attempt < options_.candidates; ++attempt)
      if (auto plan = sampler_.random(); is_new(plan)) return plan;
    return std::nullopt;
  }

  // Of random plans and of neighbours of the best ones.
  std::optional<Solution> most_promising() {
    const auto values = fitted_values();
    GaussianProcess process;
    process.fit(points(), values);
    const auto parents = best_observations(values);
    const double best_value = values[parents.front()];
    std::optional<Solution> best;
    double most = -1;
    for (int i = 0; i < options_.candidates; ++i) {
      const auto parent =
          static_cast<std::size_t>(parents[static_cast<std::size_t>(i / 2) % parents.size()]);
      auto plan = i % 2 == 0 ? sampler_.random() : sampler_.neighbour(observations_[parent].plan);
      if (!is_new(plan)) continue;
      const double gain = expected_improvement(process.predict(embed_(plan)), best_value);
      if (gain <= most) continue;
      most = gain;
      best = std::move(plan);
    }
    return best;
  }

  void observe(const Solution& plan) {
    seen_.insert(key(plan));
    Observation observation{plan, embed_(plan)};
    if (const auto figures = best_.offer(plan)) {
      const double value = objective_.value(figures->usd, figures->seconds);
      observation.value = std::log(std::max(value, 1e-300));
    } else {
      // Limits hold to rounding, so a plan outside of them is off by that at least.
      observation.violation = std::max(violation(problem_, objective_, plan), kTolerance);
    }
    observations_.push_back(std::move(observation));
  }

  Eigen::MatrixXd points() const {
    Eigen::MatrixXd result(observations_.front().point.size(), size());
    for (Eigen::Index i = 0; i < size(); ++i) result.col(i) = at(i).point;
    return result;
  }

  Eigen::VectorXd fitted_values() const {
    double worst = -PlanningProblem::kNever;
    for (const auto& each : observations_)
      if (each.violation == 0) worst = std::max(worst, each.value);
    if (std::isinf(worst)) worst = 0;
    Eigen::VectorXd result(size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      const auto& each = at(i);
      result[i] = each.violation == 0 ? each.value : worst + std::log1p(each.violation);
    }
    return result;
  }

  // The best few, the very best first.
  std::vector<Eigen::Index> best_observations(const Eigen::VectorXd& values) const {
    std::vector<Eigen::Index> order(observations_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto count = std::min(order.size(), kParents);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](auto a, auto b) { return values[a] < values[b]; });
    order.resize(count);
    return order;
  }

  Eigen::Index size() const { return static_cast<Eigen::Index>(observations_.size()); }
  const Observation& at(Eigen::Index i) const { return observations_[static_cast<std::size_t>(i)]; }

  const PlanningProblem& problem_;
  const Objective& objective_;
  const BayesOptions& options_;
  const Embedding embed_;
  PlanSampler sampler_;
  Incumbent best_;
  std::vector<Observation> observations_;
  std::set<std::vector<int>> seen_;
};

}  // namespace

SolverResult solve_bayes(const PlanningProblem& problem, const Objective& objective,
                         const BayesOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  check(problem);
  if (options.initial < 1 || options.candidates < 1) {
    fail(ErrorCode::kInvalidArgument,
         "Bayesian optimisation needs at least one plan to begin with and one candidate");
  }
  auto result = BayesSearch(problem, objective, options).run();
  result.solver_seconds = to_seconds(std::chrono::steady_clock::now() - start);
  return result;
}

}  // namespace funcpipe
