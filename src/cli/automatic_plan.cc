#include "cli/automatic_plan.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "cli/planning.h"
#include "cli/profiling.h"

namespace funcpipe {
namespace {

ModelProfile measure(const PreparedJob& prepared, const AutoPlanSpec& wishes,
                     const std::filesystem::path& output, const std::stop_token& stop) {
  ProfilingOptions options;
  options.memory_mb = wishes.memory_mb;
  options.fresh = true;
  options.output = output;
  return measure_profile(prepared, options, stop);
}

void check_model(const ModelProfile& profile, const PreparedJob& prepared,
                 const std::string& path) {
  if (profile.layer_count() == prepared.model.layer_count()) return;
  fail(ErrorCode::kInvalidArgument, "{}: the profile is of a model of {} layers, this one has {}",
       path, profile.layer_count(), prepared.model.layer_count());
}

}  // namespace

void plan_automatically(PreparedJob& prepared, const std::filesystem::path& profile,
                        const std::stop_token& stop) {
  const auto& wishes = prepared.job.plan.automatic.value();
  const auto measured = wishes.profile.empty()
                            ? measure(prepared, wishes, profile, stop)
                            : ModelProfile::from_config(ConfigNode::from_file(wishes.profile));
  check_model(measured, prepared, wishes.profile);
  const auto setup = prepare_planning(prepared.job, wishes, measured, prepared.train.records, "");
  const auto planned = make_plan(setup);
  fmt::print(stderr, "{}",
             plan_table(setup.merged.profile, setup.problem, setup.platform, planned));
  adopt_plan(prepared, planned.plan, plan_file(setup.problem, planned));
}

}  // namespace funcpipe
