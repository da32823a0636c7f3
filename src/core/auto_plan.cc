#include "core/auto_plan.h"

#include <array>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/ranges.h>

#include "base/units.h"

namespace funcpipe {
namespace {

constexpr std::array<std::pair<PlanObjective, std::string_view>, 4> kObjectives = {
    {{PlanObjective::kRecommended, "recommended"},
     {PlanObjective::kCheapest, "cheapest"},
     {PlanObjective::kFastest, "fastest"},
     {PlanObjective::kWeighted, "weighted"}}};
constexpr std::array<std::pair<PlanSolver, std::string_view>, 4> kSolvers = {
    {{PlanSolver::kExact, "exact"},
     {PlanSolver::kMilp, "milp"},
     {PlanSolver::kTpdmp, "tpdmp"},
     {PlanSolver::kBayes, "bayes"}}};

template <typename E, std::size_t N>
std::string_view name_of(E value, const std::array<std::pair<E, std::string_view>, N>& names) {
  return names.at(static_cast<std::size_t>(value)).second;
}

template <typename E, std::size_t N>
E value_of(std::string_view name, std::string_view what,
           const std::array<std::pair<E, std::string_view>, N>& names) {
  std::vector<std::string_view> known;
  for (const auto& [value, text] : names) {
    if (text == name) return value;
    known.push_back(text);
  }
  fail(ErrorCode::kInvalidArgument, "unknown {} '{}'; choose one of {}", what, name,
       fmt::join(known, ", "));
}

// Runs `parse` and tells its errors with the place of `node`.
template <typename Parse>
auto at(const ConfigNode& node, Parse parse) {
  try {
    return parse(node.as<std::string>());
  } catch (const Error& error) {
    node.reject(error.what());
  }
}

std::vector<int> read_positive(const ConfigNode& node) {
  std::vector<int> values;
  const auto items = node.is_list() ? node.items() : std::vector<ConfigNode>{node};
  for (const auto& item : items) {
    values.push_back(item.as<int>());
    if (values.back() < 1) item.reject("must be at least 1");
  }
  return values;
}

double read_positive_number(const ConfigNode& node) {
  const auto value = node.as<double>();
  if (value <= 0) node.reject(fmt::format("must be above 0, is {}", value));
  return value;
}

double read_positive_seconds(const ConfigNode& node) {
  const auto seconds = to_seconds(node.as<Duration>());
  if (seconds <= 0) node.reject("must be above 0");
  return seconds;
}

std::string seconds_text(double seconds) {
  return fmt::format("{} ns", from_seconds(seconds).count());
}

}  // namespace

std::string_view to_string(PlanObjective objective) { return name_of(objective, kObjectives); }
std::string_view to_string(PlanSolver solver) { return name_of(solver, kSolvers); }

PlanObjective plan_objective_from(std::string_view name) {
  return value_of(name, "objective", kObjectives);
}
PlanSolver plan_solver_from(std::string_view name) { return value_of(name, "solver", kSolvers); }

std::pair<double, double> parse_alpha(std::string_view text) {
  std::array<double, 2> values{};
  const char *at = text.data(), *const end = at + text.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [rest, error] = std::from_chars(at, end, values[i]);
    const bool separated = i == 0 ? rest != end && *rest == ',' : rest == end;
    if (error != std::errc() || !separated || !std::isfinite(values[i]) || values[i] < 0) {
      fail(ErrorCode::kInvalidArgument,
           "'{}' is not a pair of weights; write for example '1,65536'", text);
    }
    at = i == 0 ? rest + 1 : rest;
  }
  if (values[0] == 0 && values[1] == 0)
    fail(ErrorCode::kInvalidArgument, "one of the two weights must be above 0");
  return {values[0], values[1]};
}

AutoPlanSpec AutoPlanSpec::from_reader(ConfigReader& reader) {
  AutoPlanSpec spec;
  if (const auto node = reader.optional_node("objective"))
    spec.objective = at(*node, plan_objective_from);
  if (const auto node = reader.optional_node("alpha")) {
    if (spec.objective != PlanObjective::kWeighted)
      node->reject("alpha is for objective: weighted");
    std::tie(spec.usd_weight, spec.seconds_weight) = at(*node, parse_alpha);
  } else if (spec.objective == PlanObjective::kWeighted) {
    reader.required_node("alpha");
  }
  if (const auto node = reader.optional_node("max_time"))
    spec.max_seconds = read_positive_seconds(*node);
  if (const auto node = reader.optional_node("max_cost"))
    spec.max_usd = read_positive_number(*node);
  if (const auto node = reader.optional_node("max_functions"))
    spec.max_functions = read_positive(*node).at(0);
  if (const auto node = reader.optional_node("memory_mb")) spec.memory_mb = read_positive(*node);
  if (const auto node = reader.optional_node("replicas")) spec.replicas = read_positive(*node);
  spec.profile = reader.optional<std::string>("profile", "");
  if (const auto node = reader.optional_node("performance_model")) {
    spec.performance_model = node->as<std::string>();
    if (spec.performance_model != "paper" && spec.performance_model != "full")
      node->reject(
          fmt::format("'{}' is not known here; choose one of paper, full", spec.performance_model));
  }
  if (const auto node = reader.optional_node("solver")) spec.solver = at(*node, plan_solver_from);
  if (const auto node = reader.optional_node("merge")) spec.merge = read_positive(*node).at(0);
  if (const auto node = reader.optional_node("time_limit"))
    spec.time_limit_seconds = read_positive_seconds(*node);
  return spec;
}

nlohmann::json AutoPlanSpec::to_json() const {
  nlohmann::json json = {{"objective", std::string(to_string(objective))},
                         {"performance_model", performance_model},
                         {"solver", std::string(to_string(solver))}};
  if (objective == PlanObjective::kWeighted)
    json["alpha"] = fmt::format("{},{}", usd_weight, seconds_weight);
  if (std::isfinite(max_seconds)) json["max_time"] = seconds_text(max_seconds);
  if (std::isfinite(max_usd)) json["max_cost"] = max_usd;
  if (max_functions != AutoPlanSpec{}.max_functions) json["max_functions"] = max_functions;
  if (!memory_mb.empty()) json["memory_mb"] = memory_mb;
  if (!replicas.empty()) json["replicas"] = replicas;
  if (!profile.empty()) json["profile"] = profile;
  if (merge > 0) json["merge"] = merge;
  if (std::isfinite(time_limit_seconds)) json["time_limit"] = seconds_text(time_limit_seconds);
  return json;
}

std::string AutoPlanSpec::describe() const {
  std::string text(to_string(objective));
  if (objective == PlanObjective::kWeighted)
    text += fmt::format(" {},{}", usd_weight, seconds_weight);
  std::vector<std::string> limits;
  if (std::isfinite(max_seconds))
    limits.push_back(format_duration(from_seconds(max_seconds)) + " an iteration");
  if (std::isfinite(max_usd)) limits.push_back(fmt::format("${} an iteration", max_usd));
  if (max_functions != AutoPlanSpec{}.max_functions)
    limits.push_back(fmt::format("{} functions", max_functions));
  if (!limits.empty()) text += fmt::format(" within {}", fmt::join(limits, " and "));
  return text;
}

}  // namespace funcpipe
