#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/job_setup.h"
#include "cli/profiling.h"
#include "platform/local_host.h"

namespace funcpipe {
namespace {

struct ProfileOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  ProfilingOptions profiling;
};

int profile(const ProfileOptions& options) {
  const InterruptGuard interrupt;
  const auto prepared = prepare_job_without_plan(options.job_path, options.overrides);
  try {
    measure_profile(prepared, options.profiling, interrupt.token());
  } catch (const Error& error) {
    if (!interrupt.interrupted()) throw;
    const auto partial = partial_profile(options.profiling.output);
    fmt::print(stderr, "funcpipe: stopped{}\n",
               std::filesystem::exists(partial)
                   ? fmt::format("; the same command goes on from {}", partial.string())
                   : "");
    return kExitInterrupted;
  }
  fmt::print("{}\n", options.profiling.output.string());
  return kExitOk;
}

}  // namespace

void add_profile_command(CLI::App& app, CommandResult& result) {
  auto options = std::make_shared<ProfileOptions>();
  auto& profiling = options->profiling;
  auto* command = app.add_subcommand(
      "profile", "Measure the layers of a job's model on its platform (docs/profiling.md)");
  command->add_option("job", options->job_path, "Job file (docs/job.md)")->required();
  command->add_option("-o,--output", profiling.output, "Profile to write, as JSON")->required();
  const auto spec = local_spec();
  command
      ->add_option("--memory", profiling.memory_mb,
                   "Memory options in MB: 1024,2048 (default: the usual ones)")
      ->delimiter(',')
      ->check(CLI::Range(spec.min_memory_mb, spec.max_memory_mb));
  command->add_option("--rounds", profiling.rounds, "Rounds to take the median of")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--warm-up", profiling.warm_up_passes, "Passes before the first round")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      ->add_option("--parallel", profiling.parallel,
                   "Memory options at a time; on one machine they disturb each other")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--fresh", profiling.fresh, "Do not go on with an interrupted profile");
  command
      ->add_option("--set", options->overrides, "Change a key of the job: --set training.epochs=1")
      ->take_all()
      ->expected(1);
  command->callback([options, &result] { result.exit_code = profile(*options); });
}

}  // namespace funcpipe
