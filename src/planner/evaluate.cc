#include "planner/evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace funcpipe {
namespace {

using Table = std::vector<std::vector<double>>;

double sum(const std::vector<double>& values, int first, int last) {
  double total = 0;
  for (int i = first; i < last; ++i) total += values[static_cast<std::size_t>(i)];
  return total;
}

StageEvaluation evaluate_stage(const PlanningProblem& problem, const StageChoice& stage,
                               const PlanningProblem::Degree& degree) {
  const auto option = static_cast<std::size_t>(stage.option);
  const auto first = static_cast<std::size_t>(stage.first);
  const auto last = static_cast<std::size_t>(stage.last);
  StageEvaluation result;
  result.forward = sum(problem.forward[option], stage.first, stage.last);
  result.backward = sum(problem.backward[option], stage.first, stage.last);
  result.update = sum(problem.update[option], stage.first, stage.last);
  if (stage.last < problem.layer_count()) {
    result.up = problem.up[option][last];
    result.gradient_down = problem.down[option][last];
  }
  if (stage.first > 0) {
    result.down = problem.down[option][first];
    result.gradient_up = problem.up[option][first];
  }
  double sync_bytes = 0;
  for (auto i = first; i < last; ++i) sync_bytes += problem.layers[i].sync_bytes;
  result.sync = degree.sync_seconds_per_byte[option] * sync_bytes + degree.sync_seconds[option];
  result.memory_bytes = stage_memory(problem, stage, degree);
  return result;
}

// t_b of every stage, from the last to the first.
void add_backward_totals(std::vector<StageEvaluation>& stages, int micro_batches) {
  double terms = 0, largest = 0;
  for (std::size_t k = stages.size(); k-- > 0;) {
    auto& stage = stages[k];
    terms += stage.backward + stage.gradient_down;
    largest = std::max({largest, stage.backward, stage.gradient_down});
    stage.backward_total = terms + (micro_batches - 1) * largest;
    terms += stage.gradient_up;
    largest = std::max(largest, stage.gradient_up);
  }
}

bool is_table(const Table& table, std::size_t options, std::size_t columns) {
  return table.size() == options && std::all_of(table.begin(), table.end(), [&](const auto& row) {
           return row.size() == columns && std::none_of(row.begin(), row.end(), [](double value) {
                    return std::isnan(value) || value < 0;
                  });
         });
}

bool is_row(const std::vector<double>& row, std::size_t columns) {
  return row.size() == columns && std::all_of(row.begin(), row.end(), [](double value) {
           return std::isfinite(value) && value >= 0;
         });
}

bool inputs_are_kept(const std::vector<PlanningProblem::Layer>& layers) {
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto& before = layers[i - 1];
    if (layers[i].input_bytes > before.input_bytes + before.activation_bytes) return false;
  }
  return true;
}

}  // namespace

double stage_memory(const PlanningProblem& problem, const StageChoice& stage,
                    const PlanningProblem::Degree& degree) {
  const auto option = static_cast<std::size_t>(stage.option);
  double parameters = 0, fixed = 0, workspace = 0;
  double activations = problem.layers[static_cast<std::size_t>(stage.first)].input_bytes;
  for (auto i = static_cast<std::size_t>(stage.first); i < static_cast<std::size_t>(stage.last);
       ++i) {
    if (std::isinf(problem.forward[option][i]) || std::isinf(problem.backward[option][i]))
      return PlanningProblem::kNever;
    const auto& layer = problem.layers[i];
    parameters += layer.parameter_bytes;
    fixed += layer.fixed_bytes;
    activations += layer.activation_bytes;
    workspace = std::max(workspace, layer.workspace_bytes);
  }
  return problem.options[option].base_bytes + degree.state_factor * parameters + fixed +
         degree.micro_batches * activations + workspace;
}

Evaluation evaluate(const PlanningProblem& problem, const Solution& solution) {
  const auto& degree = problem.degrees.at(static_cast<std::size_t>(solution.degree));
  Evaluation result;
  double terms = 0, largest = 0;
  std::int64_t price_units = 0;
  for (const auto& choice : solution.stages) {
    const auto stage = evaluate_stage(problem, choice, degree);
    const auto option = static_cast<std::size_t>(choice.option);
    terms += stage.forward + stage.up + stage.down;
    largest = std::max({largest, stage.forward, stage.up, stage.down});
    price_units += problem.options[option].price_units;
    result.usd += degree.stage_usd[option];
    result.fits = result.fits && stage.memory_bytes <= problem.options[option].memory_bytes;
    result.stages.push_back(stage);
  }
  add_backward_totals(result.stages, degree.micro_batches);
  result.forward_seconds = terms + (degree.micro_batches - 1) * largest;
  double rest = -1;
  for (std::size_t k = 0; k < result.stages.size(); ++k) {
    const auto& stage = result.stages[k];
    const double end = stage.backward_total + (stage.sync + stage.update);
    if (end > rest) {
      rest = end;
      result.critical_stage = static_cast<int>(k);
    }
  }
  result.seconds = result.forward_seconds + rest;
  result.usd += result.seconds * degree.replicas * static_cast<double>(price_units) *
                    problem.usd_per_unit_second +
                static_cast<double>(result.stages.size() - 1) * problem.cut_usd;
  return result;
}

void check(const PlanningProblem& problem) {
  const auto options = problem.options.size(), layers = problem.layers.size();
  const auto require = [](bool holds, std::string_view what) {
    if (!holds) fail(ErrorCode::kInvalidArgument, "a planning problem needs {}", what);
  };
  require(layers > 0, "at least one layer");
  require(options > 0, "at least one memory option");
  require(!problem.degrees.empty(), "at least one data-parallel degree");
  for (const auto* table : {&problem.forward, &problem.backward, &problem.update})
    require(is_table(*table, options, layers), "times of all layers at all options, none negative");
  for (const auto* table : {&problem.up, &problem.down})
    require(is_table(*table, options, layers), "times of all cuts at all options, none negative");
  for (const auto& option : problem.options)
    require(option.price_units > 0 && option.memory_bytes > 0, "options with memory and a price");
  for (const auto& degree : problem.degrees) {
    require(degree.replicas > 0 && degree.micro_batches > 0, "degrees of at least 1");
    for (const auto* row : {&degree.sync_seconds_per_byte, &degree.sync_seconds, &degree.stage_usd})
      require(is_row(*row, options), "synchronisation figures of all options");
  }
  require(inputs_are_kept(problem.layers), "inputs no larger than what a layer more would keep");
  require(problem.usd_per_unit_second >= 0 && problem.cut_usd >= 0, "prices of at least 0");
}

}  // namespace funcpipe
