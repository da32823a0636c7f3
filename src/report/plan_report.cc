#include "report/plan_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace funcpipe {
namespace {

std::string time_text(double seconds) { return format_duration(from_seconds(seconds)); }
std::string or_dash(double seconds) { return seconds > 0 ? time_text(seconds) : "-"; }

std::string usd_text(double usd) {
  return fmt::format("${:.{}f}", usd, usd >= 1 ? 2 : usd >= 0.01 ? 4 : 8);
}

std::string layer_range(const ModelProfile& profile, const StageChoice& stage) {
  const auto& first = profile.layers[static_cast<std::size_t>(stage.first)].name;
  const auto& last = profile.layers[static_cast<std::size_t>(stage.last) - 1].name;
  return stage.last - stage.first == 1 ? first : fmt::format("{} .. {}", first, last);
}

std::string stage_row(const ModelProfile& profile, const PlanningProblem& problem,
                      const PlatformSpec& platform, const PlannedJob& job, std::size_t k) {
  const auto& choice = job.solution.stages[k];
  const auto& stage = job.evaluation.stages[k];
  const auto& option = problem.options[static_cast<std::size_t>(choice.option)];
  const auto& layers = job.plan.stages[k];
  return fmt::format(
      "{:>5}  {:>9}  {:>6}  {:>5.2f}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>12}  {}\n", k,
      fmt::format("{}-{}", layers.first_layer, layers.last_layer - 1), option.memory_mb,
      vcpus(platform, option.memory_mb), time_text(stage.forward), time_text(stage.backward),
      or_dash(stage.up + stage.gradient_up), or_dash(stage.down + stage.gradient_down),
      or_dash(stage.sync),
      fmt::format("{:.0f} ({:.0f} %)", stage.memory_bytes / kMebibyte,
                  100 * stage.memory_bytes / option.memory_bytes),
      layer_range(profile, choice));
}

struct Share {
  double seconds = 0;
  std::string what;
};

// Of one stage: how long each of its lanes is busy in an iteration.
std::vector<Share> shares(const StageEvaluation& stage, std::size_t k, int micro_batches) {
  return {
      {micro_batches * (stage.forward + stage.backward) + stage.update,
       fmt::format("computation of stage {}", k)},
      {micro_batches * (stage.up + stage.gradient_up), fmt::format("uplink of stage {}", k)},
      {micro_batches * (stage.down + stage.gradient_down), fmt::format("downlink of stage {}", k)},
      {stage.sync, fmt::format("synchronisation of stage {}", k)}};
}

nlohmann::json stage_json(const PlanningProblem& problem, const StageChoice& choice,
                          const StageEvaluation& stage) {
  return {{"memory_mb", problem.options[static_cast<std::size_t>(choice.option)].memory_mb},
          {"forward_seconds", stage.forward},
          {"backward_seconds", stage.backward},
          {"up_seconds", stage.up},
          {"down_seconds", stage.down},
          {"gradient_up_seconds", stage.gradient_up},
          {"gradient_down_seconds", stage.gradient_down},
          {"sync_seconds", stage.sync},
          {"update_seconds", stage.update},
          {"memory_bytes", stage.memory_bytes}};
}

std::string_view to_string(Proof::Status status) {
  constexpr std::array<std::string_view, 4> kNames = {"optimal", "feasible", "infeasible",
                                                      "unknown"};
  return kNames[static_cast<std::size_t>(status)];
}

const PlanningProblem::Degree& degree_of(const PlanningProblem& problem, const PlannedJob& job) {
  return problem.degrees[static_cast<std::size_t>(job.solution.degree)];
}

}  // namespace

std::string describe(const Proof& proof, double objective) {
  if (proof.status == Proof::Status::kOptimal) return "optimal (proved)";
  if (std::isinf(proof.bound))
    return "found by a heuristic; how much better one could be is not known";
  const double gap = objective > 0 ? (objective - proof.bound) / objective : 0;
  return fmt::format("stopped early: at most {:.2f} % above the best (bound {:.6g}, found {:.6g})",
                     100 * gap, proof.bound, objective);
}

std::string bottleneck(const PlanningProblem& problem, const PlannedJob& job) {
  Share largest;
  for (std::size_t k = 0; k < job.evaluation.stages.size(); ++k) {
    for (auto& share : shares(job.evaluation.stages[k], k, degree_of(problem, job).micro_batches)) {
      if (share.seconds > largest.seconds) largest = std::move(share);
    }
  }
  return fmt::format("{} (busy {:.0f} % of the iteration)", largest.what,
                     100 * largest.seconds / job.evaluation.seconds);
}

std::string plan_table(const ModelProfile& profile, const PlanningProblem& problem,
                       const PlatformSpec& platform, const PlannedJob& job) {
  const auto& degree = degree_of(problem, job);
  const auto stages = job.solution.stages.size();
  auto text = fmt::format(
      "plan: {} stages x {} replicas = {} functions, {} micro-batches of {} samples for each, {} "
      "all-reduce\n",
      stages, degree.replicas, stages * static_cast<std::size_t>(degree.replicas),
      degree.micro_batches, profile.micro_batch_size, to_string(job.plan.all_reduce));
  text += fmt::format("{:>5}  {:>9}  {:>6}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>12}\n",
                      "stage", "layers", "MB", "vCPU", "forward", "backward", "up", "down", "sync",
                      "memory use");
  for (std::size_t k = 0; k < stages; ++k) text += stage_row(profile, problem, platform, job, k);
  text += fmt::format("iteration   {}, {}\n", time_text(job.evaluation.seconds),
                      usd_text(job.evaluation.usd));
  if (job.steps_per_epoch > 0) {
    const auto steps = static_cast<double>(job.steps_per_epoch);
    text += fmt::format("epoch       {}, {} ({} iterations)\n",
                        time_text(steps * job.evaluation.seconds),
                        usd_text(steps * job.evaluation.usd), job.steps_per_epoch);
  }
  text += fmt::format("bottleneck  {}\n", bottleneck(problem, job));
  text += fmt::format("made by     the {} solver on the {} model for {}: {}, in {}\n", job.solver,
                      job.performance_model, job.objective,
                      describe(job.result.proof, job.result.objective),
                      time_text(job.result.solver_seconds));
  return text;
}

nlohmann::json plan_file(const PlanningProblem& problem, const PlannedJob& job) {
  auto stages = nlohmann::json::array();
  for (std::size_t k = 0; k < job.solution.stages.size(); ++k)
    stages.push_back(stage_json(problem, job.solution.stages[k], job.evaluation.stages[k]));
  nlohmann::json made_by = {{"solver", job.solver},
                            {"performance_model", job.performance_model},
                            {"objective", job.objective},
                            {"proof", std::string(to_string(job.result.proof.status))},
                            {"objective_value", job.result.objective},
                            {"solver_seconds", job.result.solver_seconds},
                            {"iteration_seconds", job.evaluation.seconds},
                            {"iteration_usd", job.evaluation.usd},
                            {"bottleneck", bottleneck(problem, job)},
                            {"stages", std::move(stages)}};
  if (!std::isinf(job.result.proof.bound)) made_by["bound"] = job.result.proof.bound;
  if (job.steps_per_epoch > 0) {
    const auto steps = static_cast<double>(job.steps_per_epoch);
    made_by["epoch_seconds"] = steps * job.evaluation.seconds;
    made_by["epoch_usd"] = steps * job.evaluation.usd;
  }
  auto file = job.plan.to_json();
  file["made_by"] = std::move(made_by);
  return file;
}

}  // namespace funcpipe
