#include "planner/tpdmp.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/units.h"
#include "planner/evaluate.h"
#include "planner/incumbent.h"

namespace funcpipe {
namespace {

// The partitions of least largest load of all prefixes [0, end) into exactly k stages, for growing
// k: largest[k][end] = min over start of max(largest[k - 1][start], load(start, end)).
class ChainPartition {
 public:
  ChainPartition(const PlanningProblem& problem, int option, int degree)
      : problem_(problem),
        option_(option),
        degree_(degree),
        layers_(problem.layers.size()),
        first_fit_(layers_ + 1),
        largest_(layers_ + 1, PlanningProblem::kNever) {
    find_first_fits();
    largest_[0] = 0;
  }

  // From k - 1 to k stages.
  void add_stage() {
    std::vector<double> next(layers_ + 1, PlanningProblem::kNever);
    auto& starts = starts_.emplace_back(layers_ + 1);
    for (auto end = starts_.size(); end <= layers_; ++end) {
      double computation = 0;
      for (auto start = end; start-- > first_fit_[end];) {
        computation += layer_load(start);
        if (computation >= next[end]) break;  // and a longer stage has more to compute
        const double load = computation + (cut_load(start) + cut_load(end));
        const double largest = std::max(largest_[start], load);
        if (largest >= next[end]) continue;
        next[end] = largest;
        starts[end] = start;
      }
    }
    largest_ = std::move(next);
  }

  // Of the whole chain, if one fits.
  std::optional<Solution> solution() const {
    if (largest_[layers_] == PlanningProblem::kNever) return std::nullopt;
    Solution result{{}, degree_};
    auto end = layers_;
    for (auto k = starts_.size(); k-- > 0;) {
      const auto start = starts_[k][end];
      result.stages.push_back({static_cast<int>(start), static_cast<int>(end), option_});
      end = start;
    }
    std::reverse(result.stages.begin(), result.stages.end());
    return result;
  }

 private:
  // A part of a stage that fits does fit.
  void find_first_fits() {
    const auto& degree = problem_.degrees[static_cast<std::size_t>(degree_)];
    const double memory = problem_.options[static_cast<std::size_t>(option_)].memory_bytes;
    std::size_t start = 0;
    for (std::size_t end = 1; end <= layers_; ++end) {
      const auto needed = [&] {
        return stage_memory(problem_, {static_cast<int>(start), static_cast<int>(end), option_},
                            degree);
      };
      while (start < end && needed() > memory) ++start;
      first_fit_[end] = start;
    }
  }

  double layer_load(std::size_t layer) const {
    const auto option = static_cast<std::size_t>(option_);
    return problem_.forward[option][layer] + problem_.backward[option][layer];
  }

  // Of a stage on either side: the activation one way, its gradient the other.
  double cut_load(std::size_t cut) const {
    const auto option = static_cast<std::size_t>(option_);
    if (cut == 0 || cut == layers_) return 0;
    return problem_.up[option][cut] + problem_.down[option][cut];
  }

  const PlanningProblem& problem_;
  const int option_, degree_;
  const std::size_t layers_;
  std::vector<std::size_t> first_fit_;            // start of the longest stage that ends here
  std::vector<double> largest_;                   // of each prefix
  std::vector<std::vector<std::size_t>> starts_;  // of the last stage: [k - 1][end]
};

int most_stages(const PlanningProblem& problem, const Objective& objective, int degree) {
  const auto replicas = problem.degrees[static_cast<std::size_t>(degree)].replicas;
  return static_cast<int>(
      std::min<std::int64_t>(problem.layer_count(), objective.max_functions / replicas));
}

}  // namespace

std::vector<Solution> least_load_partitions(const PlanningProblem& problem, int option, int degree,
                                            int max_stages) {
  std::vector<Solution> result;
  ChainPartition partition(problem, option, degree);
  for (int stages = 1; stages <= max_stages; ++stages) {
    partition.add_stage();
    if (auto solution = partition.solution()) result.push_back(*std::move(solution));
  }
  return result;
}

SolverResult solve_tpdmp(const PlanningProblem& problem, const Objective& objective) {
  const auto start = std::chrono::steady_clock::now();
  check(problem);
  Incumbent best(problem, objective);
  for (int degree = 0; degree < static_cast<int>(problem.degrees.size()); ++degree) {
    const int max_stages = most_stages(problem, objective, degree);
    for (int option = 0; option < problem.option_count(); ++option) {
      for (const auto& solution : least_load_partitions(problem, option, degree, max_stages))
        best.offer(solution);
    }
  }
  auto result = best.result();
  result.solver_seconds = to_seconds(std::chrono::steady_clock::now() - start);
  return result;
}

}  // namespace funcpipe
