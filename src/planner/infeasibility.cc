#include "planner/infeasibility.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "planner/degree_model.h"
#include "planner/evaluate.h"
#include "planner/ranking.h"

namespace funcpipe {
namespace {

constexpr double kNever = PlanningProblem::kNever;
constexpr auto kAnyNumber = std::numeric_limits<std::int64_t>::max();

double mebibytes(double bytes) { return bytes / (1 << 20); }

class Explanation {
 public:
  Explanation(const PlanningProblem& problem, const Objective& objective,
              const std::vector<std::string>& layer_names, const ExactOptions& options)
      : problem_(problem), objective_(objective), names_(layer_names), options_(options) {}

  Infeasibility find() {
    if (find_layer() || find_stages() || find_deadline() || find_budget()) return result_;
    return {};
  }

 private:
  const PlanningProblem::Degree& degree(std::size_t d) const { return problem_.degrees[d]; }

  bool runs(int layer) const {
    for (int j = 0; j < problem_.option_count(); ++j)
      if (std::isfinite(stage_memory(problem_, {layer, layer + 1, j}, degree(0)))) return true;
    return false;
  }

  // By how much the memory of the layer alone is above that of option j; the least over options.
  struct Need {
    double excess = kNever;
    int option = 0;
    double bytes = 0;
  };
  Need need(int layer, const PlanningProblem::Degree& at) const {
    Need least;
    for (int j = 0; j < problem_.option_count(); ++j) {
      const double bytes = stage_memory(problem_, {layer, layer + 1, j}, at);
      const double excess = bytes - problem_.options[static_cast<std::size_t>(j)].memory_bytes;
      if (excess < least.excess) least = {excess, j, bytes};
    }
    return least;
  }

  // The layer that misses its memory by most.
  int worst_layer(const PlanningProblem::Degree& at) const {
    int worst = 0;
    for (int i = 1; i < problem_.layer_count(); ++i)
      if (need(i, at).excess > need(worst, at).excess) worst = i;
    return worst;
  }

  bool find_layer() {
    for (int i = 0; i < problem_.layer_count(); ++i) {
      if (runs(i)) continue;
      result_.cause = Infeasibility::Cause::kLayerNeverRuns;
      set_layer(i);
      return true;
    }
    std::size_t best = 0;
    double least = kNever;
    for (std::size_t d = 0; d < problem_.degrees.size(); ++d) {
      const double excess = need(worst_layer(degree(d)), degree(d)).excess;
      if (excess < least) {
        least = excess;
        best = d;
      }
    }
    if (least <= 0) return false;
    result_.cause = Infeasibility::Cause::kLayerMemory;
    describe_memory(worst_layer(degree(best)), degree(best));
    return true;
  }

  void set_layer(int layer) {
    result_.layer = layer;
    if (static_cast<std::size_t>(layer) < names_.size())
      result_.layer_name = names_[static_cast<std::size_t>(layer)];
    const auto& values = problem_.layers[static_cast<std::size_t>(layer)];
    result_.parameter_bytes = values.parameter_bytes;
    result_.activation_bytes = values.activation_bytes;
  }

  void describe_memory(int layer, const PlanningProblem::Degree& at) {
    set_layer(layer);
    const auto least = need(layer, at);
    const auto& option = problem_.options[static_cast<std::size_t>(least.option)];
    result_.replicas = at.replicas;
    result_.micro_batches = at.micro_batches;
    result_.needed_bytes = least.bytes;
    result_.available_bytes = option.memory_bytes;
    result_.option_mb = option.memory_mb;
  }

  // Every layer fits at some degree. The least number of functions that hold all, at one degree.
  bool find_stages() {
    const auto divisor = exact::price_divisor(problem_);
    std::int64_t least = kAnyNumber;
    for (int d = 0; d < static_cast<int>(problem_.degrees.size()); ++d) {
      const exact::DegreeModel model(problem_, d, divisor, false);
      const int stages = model.least_stages().back();
      const auto functions = std::int64_t{model.replicas()} * stages;
      if (stages > model.layers() || functions >= least) continue;
      least = functions;
      result_.stages = stages;
      result_.replicas = model.replicas();
      result_.micro_batches = degree(static_cast<std::size_t>(d)).micro_batches;
    }
    if (least <= objective_.max_functions) return false;
    result_.cause =
        least == kAnyNumber ? Infeasibility::Cause::kCut : Infeasibility::Cause::kFunctions;
    result_.limit = static_cast<double>(objective_.max_functions);
    result_.least = static_cast<double>(least);
    return true;
  }

  // What can be reached with the limits of `least` alone, against `limit`.
  bool exceeds(const Objective& least, double limit, Infeasibility::Cause cause) {
    const auto answer = solve_exact(problem_, least, options_);
    result_.proved = answer.proof.status == Proof::Status::kOptimal;
    if (!answer.solution) return false;
    const double value = answer.objective;
    if (!clearly_less(limit, value)) return false;
    result_.cause = cause;
    result_.limit = limit;
    result_.least = value;
    result_.functions_limited = objective_.max_functions < kAnyNumber;
    result_.max_seconds = least.max_seconds;
    return true;
  }

  bool find_deadline() {
    if (std::isinf(objective_.max_seconds)) return false;
    auto fastest = Objective::fastest();
    fastest.max_functions = objective_.max_functions;
    return exceeds(fastest, objective_.max_seconds, Infeasibility::Cause::kDeadline);
  }

  bool find_budget() {
    if (std::isinf(objective_.max_usd)) return false;
    auto cheapest = Objective::cheapest();
    cheapest.max_functions = objective_.max_functions;
    cheapest.max_seconds = objective_.max_seconds;
    return exceeds(cheapest, objective_.max_usd, Infeasibility::Cause::kBudget);
  }

  const PlanningProblem& problem_;
  const Objective& objective_;
  const std::vector<std::string>& names_;
  const ExactOptions& options_;
  Infeasibility result_;
};

std::string layer_text(const Infeasibility& why) {
  auto text = fmt::format("layer {}", why.layer);
  if (!why.layer_name.empty()) text += fmt::format(" ('{}')", why.layer_name);
  return text;
}

std::string describe_layer(const Infeasibility& why) {
  const double activations = why.activation_bytes * why.micro_batches;
  const bool by_activations = activations > why.parameter_bytes;
  return fmt::format(
      "{} ({:.0f} MB of parameters, {:.0f} MB of activations for each of {} micro-batches) alone "
      "needs {:.0f} MB at degree {}; of the options the one of {} MB comes nearest. What would "
      "help: "
      "{}, or a larger memory option",
      layer_text(why), mebibytes(why.parameter_bytes), mebibytes(why.activation_bytes),
      why.micro_batches, std::ceil(mebibytes(why.needed_bytes)), why.replicas, why.option_mb,
      by_activations ? "smaller micro-batches, a higher degree, a smaller mini-batch"
                     : "splitting the layer");
}

std::string describe_functions(const Infeasibility& why) {
  return fmt::format(
      "max_functions {:.0f}: the memory needs at least {} stages at degree {}, {:.0f} functions",
      why.limit, why.stages, why.replicas, why.least);
}

std::string known(const Infeasibility& why) { return why.proved ? "" : " known so far"; }

std::string describe_deadline(const Infeasibility& why) {
  return fmt::format("deadline {:.4g} s: the fastest plan{}{} takes {:.4g} s", why.limit,
                     why.functions_limited ? " of so few functions" : "", known(why), why.least);
}

std::string describe_budget(const Infeasibility& why) {
  std::string with = why.functions_limited ? " of so few functions" : "";
  if (std::isfinite(why.max_seconds)) with += fmt::format(" within {:.4g} s", why.max_seconds);
  return fmt::format("budget {:.4g} USD an iteration: the cheapest plan{}{} costs {:.4g} USD",
                     why.limit, with, known(why), why.least);
}

}  // namespace

std::string Infeasibility::describe() const {
  switch (cause) {
    case Cause::kLayerNeverRuns:
      return fmt::format(
          "{} runs at none of the memory options: profile it at a larger one, or split it",
          layer_text(*this));
    case Cause::kLayerMemory:
      return describe_layer(*this);
    case Cause::kCut:
      return "every layer fits some memory option, but no sequence of stages does";
    case Cause::kFunctions:
      return describe_functions(*this);
    case Cause::kDeadline:
      return describe_deadline(*this);
    case Cause::kBudget:
      return describe_budget(*this);
    case Cause::kNone:
      break;
  }
  return "there is a plan";
}

Infeasibility explain_infeasible(const PlanningProblem& problem, const Objective& objective,
                                 const std::vector<std::string>& layer_names,
                                 const ExactOptions& options) {
  check(problem);
  return Explanation(problem, objective, layer_names, options).find();
}

}  // namespace funcpipe
