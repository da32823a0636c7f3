#include "cli/job_reading.h"

#include "base/error.h"

namespace funcpipe {
namespace {

std::optional<ConfigReader> plan_section(const ConfigNode& document) {
  const auto plan = ConfigReader(document).optional_node("plan");
  if (!plan || !plan->is_map()) return std::nullopt;
  return ConfigReader(*plan);
}

bool has_plan_key(const ConfigNode& document, std::string_view key) {
  const auto section = plan_section(document);
  return section && section->has(key);
}

}  // namespace

ConfigNode job_document(const std::string& path, const std::vector<std::string>& overrides) {
  auto document = ConfigNode::from_file(path);
  for (const auto& assignment : overrides) document.override(assignment);
  return document;
}

JobSpec job_from_file(const std::string& path, const std::vector<std::string>& overrides) {
  return JobSpec::from_config(job_document(path, overrides));
}

JobSpec job_to_plan(const std::string& path, const std::vector<std::string>& overrides) {
  auto document = ConfigNode::from_file(path);
  if (!has_plan_key(document, "objective")) document.override("plan={}");
  for (const auto& assignment : overrides) document.override(assignment);
  if (!has_plan_key(document, "objective")) {
    document.override(has_plan_key(document, "alpha") ? "plan.objective=weighted"
                                                      : "plan.objective=recommended");
  }
  return JobSpec::from_config(document);
}

Plan plan_from_spec(const PlanSpec& spec, int layers) {
  if (!spec.file.empty()) {
    auto plan = Plan::from_config(ConfigNode::from_file(spec.file));
    if (plan.stages.back().last_layer != layers) {
      fail(ErrorCode::kInvalidArgument, "{}: the plan is for a model of {} layers, this one has {}",
           spec.file, plan.stages.back().last_layer, layers);
    }
    return plan;
  }
  Plan plan;
  const auto cuts = spec.cuts.empty() ? even_cuts(layers, spec.stage_count.value_or(1)) : spec.cuts;
  plan.stages = stages_from_cuts(cuts, layers, spec.memory_mb);
  plan.replicas = spec.replicas;
  plan.all_reduce = spec.all_reduce;
  return plan;
}

}  // namespace funcpipe
