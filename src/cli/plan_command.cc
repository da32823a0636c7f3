#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/job_reading.h"
#include "cli/planning.h"
#include "report/frontier_report.h"

namespace funcpipe {
namespace {

struct PlanOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string platform;
  bool json = false;
  bool frontier = false;
  std::string plot;
  std::string output;
};

// Options that say the same as keys of the job's plan section; each becomes an assignment.
struct PlanKey {
  const char* option;
  const char* key;
  const char* help;
};
constexpr PlanKey kPlanKeys[] = {
    {"--profile", "profile", "Profile to plan with (see funcpipe profile)"},
    {"--objective", "objective", "recommended, cheapest, fastest or weighted"},
    {"--alpha", "alpha", "Weights A1,A2 of cost (in MB-seconds) and seconds, for weighted"},
    {"--max-time", "max_time", "Longest iteration, e.g. 2s"},
    {"--max-cost", "max_cost", "Dearest iteration in USD"},
    {"--max-functions", "max_functions", "Most functions at a time"},
    {"--memory", "memory_mb", "Memory options to choose from, e.g. [1024,2048]"},
    {"--replicas", "replicas", "Degrees to choose from, e.g. [1,2,4]"},
    {"--performance-model", "performance_model", "full (default) or paper"},
    {"--solver", "solver", "exact (default), milp, tpdmp or bayes"},
    {"--merge", "merge", "Merge the layers to so many first"},
    {"--time-limit", "time_limit", "Longest time for the solver, e.g. 30s"},
};

void print_frontier(const PlanningSetup& setup, const PlanOptions& options) {
  const auto frontier = make_frontier(setup);
  const auto recommended = recommended_point(frontier);
  if (options.json) {
    fmt::print("{}\n", frontier_json(setup.problem, frontier, recommended).dump(2));
  } else {
    fmt::print("{}", frontier_table(setup.problem, frontier, recommended));
  }
  if (options.plot.empty()) return;
  const auto title = fmt::format("{} on {}: time and cost of an iteration",
                                 setup.merged.profile.model, setup.platform.name);
  write_file(options.plot, frontier_svg(setup.problem, frontier, recommended, title));
  fmt::print(stderr, "{}\n", options.plot);
}

void print_plan(const PlanningSetup& setup, const PlanOptions& options) {
  const auto planned = make_plan(setup);
  const auto file = plan_file(setup.problem, planned).dump(2) + "\n";
  if (options.json) {
    fmt::print("{}", file);
  } else {
    fmt::print("{}", plan_table(setup.merged.profile, setup.problem, setup.platform, planned));
  }
  if (options.output.empty()) return;
  write_file(options.output, file);
  fmt::print(stderr, "{}\n", options.output);
}

void plan(const PlanOptions& options) {
  const auto job = job_to_plan(options.job_path, options.overrides);
  const auto wishes = job.plan.automatic.value_or(AutoPlanSpec{});
  if (wishes.profile.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "a plan needs a profile: measure one with `funcpipe profile {} -o profile.json` and give "
         "it with --profile, or write one by hand (docs/planning.md)",
         options.job_path);
  }
  const auto profile = ModelProfile::from_config(ConfigNode::from_file(wishes.profile));
  const auto setup =
      prepare_planning(job, wishes, profile, training_records(job), options.platform);
  if (options.frontier) {
    print_frontier(setup, options);
  } else {
    print_plan(setup, options);
  }
}

}  // namespace

void add_plan_command(CLI::App& app, CommandResult&) {
  auto options = std::make_shared<PlanOptions>();
  auto* command = app.add_subcommand(
      "plan", "Choose cuts, memory and replicas together, and say what they cost");
  command->add_option("job", options->job_path, "Job file (docs/job.md)")->required();
  for (const auto& [option, key, help] : kPlanKeys) {
    command->add_option_function<std::string>(
        option,
        [options, key = key](const std::string& value) {
          options->overrides.push_back(fmt::format("plan.{}={}", key, value));
        },
        help);
  }
  command->add_option("--platform", options->platform,
                      "Whose prices count: local, aws-lambda, aliyun-fc (default: the profile's)");
  command->add_option("--set", options->overrides, "Change a key of the job")
      ->take_all()
      ->expected(1);
  command->add_flag("--json", options->json, "Print JSON instead of a table");
  command->add_flag("--frontier", options->frontier, "Show every plan none is better than");
  command->add_option("--plot", options->plot, "With --frontier: draw it into this SVG file");
  command->add_option("-o,--output", options->output, "Write the plan to this file");
  command->callback([options] { plan(*options); });
}

}  // namespace funcpipe
