#include "planner/milp_stages.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "planner/evaluate.h"

namespace funcpipe {
namespace {

// Bounds give way by this much, so that rounding excludes nothing.
constexpr double kSlack = 1e-7;

using Weight = std::function<double(const MilpStage&)>;

// Stages of one degree that fit, from the layers up.
class StageList {
 public:
  StageList(const PlanningProblem& problem, int degree)
      : problem_(problem), degree_(problem.degrees[static_cast<std::size_t>(degree)]) {}

  std::vector<MilpStage> build() {
    for (int first = 0; first < problem_.layer_count(); ++first)
      for (int option = 0; option < problem_.option_count(); ++option) add_stages(first, option);
    return std::move(stages_);
  }

 private:
  // Of every length: what fits gets no smaller by a layer more.
  void add_stages(int first, int option) {
    const auto j = static_cast<std::size_t>(option);
    double forward = 0, backward = 0, update = 0, sync_bytes = 0;
    for (int last = first + 1; last <= problem_.layer_count(); ++last) {
      const StageChoice choice{first, last, option};
      if (!(stage_memory(problem_, choice, degree_) <= problem_.options[j].memory_bytes)) return;
      const auto layer = static_cast<std::size_t>(last - 1);
      forward += problem_.forward[j][layer];
      backward += problem_.backward[j][layer];
      update += problem_.update[j][layer];
      sync_bytes += problem_.layers[layer].sync_bytes;
      const double sync = degree_.sync_seconds_per_byte[j] * sync_bytes + degree_.sync_seconds[j];
      add_stage(choice, forward, backward, update + sync);
    }
  }

  void add_stage(const StageChoice& choice, double forward, double backward, double tail) {
    const auto j = static_cast<std::size_t>(choice.option);
    const auto first = static_cast<std::size_t>(choice.first);
    const auto last = static_cast<std::size_t>(choice.last);
    const bool begins = choice.first == 0, ends = choice.last == problem_.layer_count();
    const double up = ends ? 0 : problem_.up[j][last];
    const double down = begins ? 0 : problem_.down[j][first];
    const double gradient_down = ends ? 0 : problem_.down[j][last];
    MilpStage stage;
    stage.choice = choice;
    stage.forward_terms = forward + up + down;
    stage.largest_forward = std::max({forward, up, down});
    stage.backward = backward + gradient_down;
    stage.largest_backward = std::max(backward, gradient_down);
    stage.gradient_up = begins ? 0 : problem_.up[j][first];
    stage.tail = tail;
    stage.usd_per_second = degree_.replicas * problem_.usd_per_unit_second *
                           static_cast<double>(problem_.options[j].price_units);
    stage.constant_usd = degree_.stage_usd[j] + (begins ? 0 : problem_.cut_usd);
    stages_.push_back(stage);
  }

  const PlanningProblem& problem_;
  const PlanningProblem::Degree& degree_;
  std::vector<MilpStage> stages_;
};

// Least sums of a weight along the chain, to each layer and from it.
class ShortestPaths {
 public:
  ShortestPaths(const std::vector<MilpStage>& stages, int layers, Weight weight)
      : weight_(std::move(weight)), to_(size(layers), PlanningProblem::kNever), from_(to_) {
    to_.front() = from_.back() = 0;
    for (const auto& stage : stages) {
      auto& best = to_[static_cast<std::size_t>(stage.choice.last)];
      best = std::min(best, to_[static_cast<std::size_t>(stage.choice.first)] + weight_(stage));
    }
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      auto& best = from_[static_cast<std::size_t>(stage->choice.first)];
      best = std::min(best, from_[static_cast<std::size_t>(stage->choice.last)] + weight_(*stage));
    }
  }

  double shortest() const { return to_.back(); }  // infinity: there is no plan
  double through(const MilpStage& stage) const {
    return to_[static_cast<std::size_t>(stage.choice.first)] + weight_(stage) +
           from_[static_cast<std::size_t>(stage.choice.last)];
  }

 private:
  static std::size_t size(int layers) { return static_cast<std::size_t>(layers) + 1; }

  Weight weight_;
  std::vector<double> to_, from_;
};

double all_terms(const MilpStage& stage) {
  return stage.forward_terms + stage.backward + stage.gradient_up;
}

// What a plan takes beside the sum of its terms: seconds = sum + (mu - 1) * (forward + backward) +
// tail, if the first stage ends last; more if another does.
struct Extremes {
  double forward = 0, backward = 0;  // largest terms
  double tail = 0;
};

Extremes extremes(const MilpStage& stage, const Extremes& least) {
  return {std::max(least.forward, stage.largest_forward),
          std::max({least.backward, stage.largest_backward, stage.gradient_up}),
          stage.choice.first == 0 ? stage.tail : least.tail};
}

// Sets the bounds of all stages and drops those in no plan of interest.
class Reduction {
 public:
  Reduction(const PlanningProblem& problem, const Objective& objective, int degree, double cutoff)
      : objective_(objective),
        layers_(problem.layer_count()),
        waits_(problem.degrees[static_cast<std::size_t>(degree)].micro_batches - 1),
        cutoff_(cutoff) {}

  std::vector<MilpStage> operator()(const std::vector<MilpStage>& stages) const {
    const ShortestPaths seconds(stages, layers_, all_terms);
    const ShortestPaths longest(stages, layers_, [](const auto& s) { return -all_terms(s); });
    const ShortestPaths price(stages, layers_, [](const auto& s) { return s.usd_per_second; });
    const ShortestPaths constants(stages, layers_, [](const auto& s) { return s.constant_usd; });
    if (seconds.shortest() == PlanningProblem::kNever) return {};
    const auto least = least_extremes(stages);
    const auto most = most_extremes(stages);
    std::vector<MilpStage> kept;
    for (auto stage : stages) {
      if (seconds.through(stage) == PlanningProblem::kNever) continue;
      stage.least_seconds =
          (seconds.through(stage) + beside(extremes(stage, least))) * (1 - kSlack);
      stage.most_seconds = (beside(most) - longest.through(stage)) * (1 + kSlack);
      limit(stage, price.through(stage), constants.through(stage));
      if (stage.least_seconds <= stage.most_seconds) kept.push_back(stage);
    }
    return kept;
  }

 private:
  double beside(const Extremes& extremes) const {
    return waits_ * (extremes.forward + extremes.backward) + extremes.tail;
  }

  // Every plan has a stage for each layer, so its largest terms are no less than that stage's.
  Extremes least_extremes(const std::vector<MilpStage>& stages) const {
    std::vector<Extremes> least(static_cast<std::size_t>(layers_),
                                {PlanningProblem::kNever, PlanningProblem::kNever, 0});
    double tail = PlanningProblem::kNever;
    for (const auto& stage : stages) {
      const auto own = extremes(stage, {});
      if (stage.choice.first == 0) tail = std::min(tail, stage.tail);
      for (int i = stage.choice.first; i < stage.choice.last; ++i) {
        auto& at = least[static_cast<std::size_t>(i)];
        at.forward = std::min(at.forward, own.forward);
        at.backward = std::min(at.backward, own.backward);
      }
    }
    Extremes result{0, 0, tail};
    for (const auto& at : least) {
      result.forward = std::max(result.forward, at.forward);
      result.backward = std::max(result.backward, at.backward);
    }
    return result;
  }

  Extremes most_extremes(const std::vector<MilpStage>& stages) const {
    Extremes result;
    for (const auto& stage : stages) {
      const auto own = extremes(stage, result);
      result = {own.forward, own.backward, std::max(result.tail, stage.tail)};
    }
    return result;
  }

  // usd >= price * seconds + constants, and value = a1 usd + a2 seconds.
  void limit(MilpStage& stage, double price, double constants) const {
    const double a1 = objective_.usd_weight, a2 = objective_.seconds_weight;
    stage.least_value =
        (a1 * (price * stage.least_seconds + constants) + a2 * stage.least_seconds) * (1 - kSlack);
    const auto most = [](double limit, double constant, double rate) {
      const double rest = limit * (1 + kSlack) - constant * (1 - kSlack);
      if (rest < 0) return rest;
      return rate > 0 ? rest / rate * (1 + kSlack) : PlanningProblem::kNever;
    };
    stage.most_seconds = std::min({stage.most_seconds, most(objective_.max_seconds, 0, 1),
                                   most(objective_.max_usd, constants, price),
                                   most(cutoff_, a1 * constants, a1 * price + a2)});
  }

  const Objective& objective_;
  const int layers_;
  const double waits_;  // micro-batches that wait for the slowest: mu - 1
  const double cutoff_;
};

}  // namespace

std::vector<MilpStage> milp_stages(const PlanningProblem& problem, const Objective& objective,
                                   int degree, double cutoff) {
  auto stages = StageList(problem, degree).build();
  const Reduction reduced(problem, objective, degree, cutoff);
  for (std::size_t before = 0; stages.size() != before && !stages.empty();) {
    before = stages.size();
    stages = reduced(stages);
  }
  return stages;
}

}  // namespace funcpipe
