#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/job_reading.h"
#include "cli/planning.h"
#include "report/chrome_trace.h"
#include "report/simulation_report.h"
#include "sim/simulator.h"

namespace funcpipe {
namespace {

struct SimulateOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string profile;
  std::string plan;
  std::string platform;
  std::string waiting = "polling";
  std::string trace;
  std::string store_bandwidth;
  double jitter = 0;
  bool json = false;
  SimulationOptions simulation;
};

SimulationOptions simulation_options(const SimulateOptions& options) {
  auto simulation = options.simulation;
  simulation.waiting = options.waiting == "ideal" ? Waiting::kIdeal : Waiting::kPolling;
  simulation.jitter = {options.jitter, options.jitter, options.jitter};
  if (!options.store_bandwidth.empty())
    simulation.store.bytes_per_second = parse_bytes_per_second(options.store_bandwidth);
  simulation.traces = !options.trace.empty();
  return simulation;
}

// The plan of the command line; else that of the job, made now if it says nothing or leaves it to
// the planner.
Plan plan_of(const SimulateOptions& options, const ModelProfile& profile) {
  if (!options.plan.empty()) return Plan::from_config(ConfigNode::from_file(options.plan));
  const auto job = job_from_file(options.job_path, options.overrides);
  if (!job.plan.automatic && job.plan != PlanSpec())
    return plan_from_spec(job.plan, profile.layer_count());
  return make_plan(prepare_planning(job, job.plan.automatic.value_or(AutoPlanSpec()), profile,
                                    training_records(job), options.platform))
      .plan;
}

std::string profile_path(const SimulateOptions& options, const JobSpec& job) {
  if (!options.profile.empty()) return options.profile;
  if (job.plan.automatic && !job.plan.automatic->profile.empty())
    return job.plan.automatic->profile;
  fail(ErrorCode::kInvalidArgument,
       "a simulation needs a profile: measure one with `funcpipe profile {} -o profile.json` and "
       "give it with --profile",
       options.job_path);
}

void simulate_job(const SimulateOptions& options) {
  const auto job = job_from_file(options.job_path, options.overrides);
  const auto profile = ModelProfile::from_config(ConfigNode::from_file(profile_path(options, job)));
  const auto plan = plan_of(options, profile);
  const auto platform =
      platform_spec(options.platform.empty() ? profile.platform : options.platform);
  const TrainingShape shape{job.training.batch_size, job.training.micro_batch_size,
                            training_records(job), job.training.clip_norm > 0};
  const auto result = simulate(profile, plan, shape, simulation_options(options));
  if (options.json) {
    fmt::print("{}\n", simulation_json(result, platform).dump(2));
  } else {
    fmt::print("{}", simulation_table(result, platform));
  }
  if (options.trace.empty()) return;
  write_file(options.trace, chrome_trace(result.traces, 1));
  fmt::print(stderr, "{}\n", options.trace);
}

}  // namespace

void add_simulate_command(CLI::App& app, CommandResult&) {
  auto options = std::make_shared<SimulateOptions>();
  auto& simulation = options->simulation;
  auto* command = app.add_subcommand("simulate", "Run a plan on paper: time, cost, critical path");
  command->add_option("job", options->job_path, "Job file (docs/job.md)")->required();
  command->add_option("--profile", options->profile, "Profile of the job's model");
  command->add_option("--plan", options->plan, "Plan file (default: the job's plan)");
  command->add_option("--steps", simulation.steps, "Steps to simulate")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--waiting", options->waiting,
                   "How receivers wait: polling, as the runtime, or ideal")
      ->check(CLI::IsMember({"polling", "ideal"}))
      ->capture_default_str();
  command
      ->add_option("--jitter", options->jitter, "Relative standard deviation of every task's time")
      ->check(CLI::Range(0.0, 10.0));
  command->add_option("--seed", simulation.seed, "Of the jitter");
  command->add_flag("--cold-starts", simulation.cold_starts,
                    "Begin with cold starts and the download of the model");
  command->add_option("--store-bandwidth", options->store_bandwidth,
                      "What the store gives to all functions together, e.g. '5 GB/s'");
  command
      ->add_option("--store-requests", simulation.store.requests_per_second,
                   "Requests a second that the store serves")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--platform", options->platform,
                      "Whose prices count: local, aws-lambda, aliyun-fc (default: the profile's)");
  command->add_option("--trace", options->trace, "Write a Chrome trace to this file");
  command->add_flag("--json", options->json, "Print JSON instead of a table");
  command->add_option("--set", options->overrides, "Change a key of the job")
      ->take_all()
      ->expected(1);
  command->callback([options] { simulate_job(*options); });
}

}  // namespace funcpipe
