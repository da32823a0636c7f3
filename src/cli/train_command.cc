#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/automatic_plan.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/job_setup.h"
#include "cli/local_run.h"
#include "cli/process_start.h"
#include "cli/progress_display.h"
#include "cli/run_directory.h"
#include "coordinator/coordinator.h"
#include "data/safetensors.h"
#include "nn/export_result.h"
#include "platform/lambda_client.h"
#include "platform/local_host.h"
#include "platform/local_host_process.h"
#include "report/chrome_trace.h"
#include "report/cost.h"
#include "store/counting_store.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

struct TrainOptions {
  std::string job_path;
  std::string run_dir;
  std::vector<std::string> overrides;
  bool overwrite = false;
};

std::set<int> memory_options(const Plan& plan) {
  std::set<int> options;
  for (const auto& stage : plan.stages) options.insert(stage.memory_mb);
  return options;
}

// One run from the prepared job to the files in its run directory.
class TrainRun {
 public:
  // Starts the local platform.
  TrainRun(PreparedJob prepared, RunDirectory& directory)
      : prepared_(std::move(prepared)),
        directory_(directory),
        id_(unique_run_id(prepared_.job.name)),
        store_url_(prepared_.job.store.empty() ? url_of(directory.file("store"))
                                               : prepared_.job.store),
        own_store_(prepared_.job.store.empty() ? directory.file("store") : std::filesystem::path()),
        store_(open_store(store_url_), store_usage_),
        host_({executable_path(), "host", "--control-fd"},
              local_host_config(prepared_.job.platform.local, memory_options(prepared_.plan),
                                directory.file("logs"))),
        platform_({host_.endpoint()}),
        coordinator_(store_, platform_, clock_),
        display_(isatty(STDERR_FILENO) == 1) {}

  void run(std::stop_token stop) {
    write_file(directory_.file("job.yaml"), prepared_.yaml);
    write_file(directory_.file("plan.json"), prepared_.plan_file.dump(2) + "\n");
    print_start();
    try {
      write_result(coordinator_.run(request(), events(), std::move(stop)));
    } catch (...) {
      display_.finish();
      write_cost_if_possible();
      throw;
    }
    display_.finish();
    write_cost();
    print_end();
  }

 private:
  RunRequest request() {
    for (int i = 0; i < prepared_.model.layer_count(); ++i)
      layer_files_.push_back(prepared_.model.layer_file(i));
    return {prepared_.job,
            prepared_.plan,
            prepared_.model.manifest(),
            layer_files_,
            id_,
            store_url_,
            prepared_.train.records,
            prepared_.job.platform.local.time_dilation};
  }

  RunEvents events() {
    RunEvents events;
    events.step = [this](const StepSummary& summary) {
      if (summary.step == 0) {
        display_.note(
            fmt::format("first step done {} after launch", format_duration(process_age())));
      }
      directory_.add(summary);
      display_.step(summary, cost_so_far(summary));
    };
    events.evaluation = [this](const EvaluationSummary& summary) {
      directory_.add(summary);
      display_.evaluation(summary);
    };
    events.note = [this](const std::string& text) { display_.note(text); };
    return events;
  }

  // Functions still running have not been billed yet: their time so far counts, and storage
  // requests as many as those of the last stage, which reports them with its steps.
  double cost_so_far(const StepSummary& summary) const {
    const auto spec = local_spec();
    StoreUsage requests;
    requests.puts = summary.puts;
    requests.gets = summary.gets;
    const double seconds =
        to_seconds(clock_.now() - begin_) / prepared_.job.platform.local.time_dilation;
    double cost = cost_of(store_.snapshot(), spec).total_usd() +
                  cost_of(requests, spec).total_usd() * prepared_.plan.stage_count();
    for (const auto& stage : prepared_.plan.stages) {
      cost += prepared_.plan.replicas * gb_seconds(stage.memory_mb, from_seconds(seconds)) *
              spec.usd_per_gb_second;
    }
    return cost;
  }

  void print_start() const {
    const auto& plan = prepared_.plan;
    fmt::print(stderr,
               "{}: model {} ({} layers, {} parameters), {} training records, {} test records\n",
               prepared_.job.name, prepared_.model.manifest().name, prepared_.model.layer_count(),
               prepared_.model.manifest().parameter_count(), prepared_.train.records,
               prepared_.test.records);
    fmt::print(stderr, "plan: {} stages x {} replicas = {} functions, {} all-reduce\n",
               plan.stage_count(), plan.replicas, plan.stage_count() * plan.replicas,
               to_string(plan.all_reduce));
    for (int i = 0; i < plan.stage_count(); ++i) {
      const auto& stage = plan.stages[static_cast<std::size_t>(i)];
      fmt::print(stderr, "  stage {}: layers {} to {}, {} MB\n", i, stage.first_layer,
                 stage.last_layer - 1, stage.memory_mb);
    }
    fmt::print(stderr, "platform: local ({})\n", host_.isolation());
  }

  void write_result(const RunResult& result) {
    write_weights(result);
    write_file(directory_.file("trace.json"),
               chrome_trace(result.traces, prepared_.job.platform.local.time_dilation));
  }

  void write_weights(const RunResult& result) {
    NamedTensors weights;
    std::vector<NamedTensors> stages;
    for (std::size_t i = 0; i < result.stage_weights.size(); ++i) {
      stages.push_back(parse_safetensors(Buffer::copy_of(result.stage_weights[i].view()),
                                         fmt::format("weights of stage {}", i)));
      weights.tensors.insert(weights.tensors.end(), stages.back().tensors.begin(),
                             stages.back().tensors.end());
    }
    const auto file = write_safetensors(weights.tensors, {{"format", "pt"}});
    write_file(directory_.file("model.safetensors"), file.parts);
    export_torchscript(prepared_.model, weights, directory_.file("model.pt"));
  }

  void write_cost() {
    write_file(
        directory_.file("cost.json"),
        cost_report(coordinator_.accounts(), store_.snapshot(), local_spec()).dump(2) + "\n");
  }

  // After a failure, which is what has to be told.
  void write_cost_if_possible() {
    try {
      write_cost();
    } catch (const Error&) {
    }
  }

  void print_end() {
    const auto accounts = coordinator_.accounts();
    const auto spec = local_spec();
    auto cost = total_cost(accounts, spec);
    cost += cost_of(store_.snapshot(), spec);
    StoreUsage usage = store_.snapshot();
    for (const auto& account : accounts) usage += account.usage;
    fmt::print(stderr,
               "done in {}: {:.0f} samples/s, {:.1f} GB-s, {} up, {} down, {} storage requests; at "
               "AWS prices ${:.5f}\n",
               format_duration(process_age()), display_.samples_per_second(), cost.gb_seconds,
               format_bytes(static_cast<double>(usage.bytes_up)),
               format_bytes(static_cast<double>(usage.bytes_down)),
               usage.puts + usage.gets + usage.heads + usage.lists + usage.removes,
               cost.total_usd());
    fmt::print("{}\n", directory_.file("model.safetensors").string());
    fmt::print("{}\n", directory_.file("model.pt").string());
  }

  PreparedJob prepared_;
  RunDirectory& directory_;
  const std::string id_;
  const std::string store_url_;
  const OwnStore own_store_;  // goes after the host, when nobody writes any more
  UsageCounter store_usage_;
  CountingStore store_;
  SteadyClock clock_;
  const TimePoint begin_ = clock_.now();
  const LocalHostProcess host_;
  LambdaClient platform_;
  Coordinator coordinator_;
  ProgressDisplay display_;
  std::vector<Buffer> layer_files_;
};

std::filesystem::path default_run_dir(const std::string& name) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return std::filesystem::path("runs") /
         fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
}

std::unique_ptr<TrainRun> start(PreparedJob prepared, RunDirectory& directory,
                                std::stop_token stop) {
  try {
    if (prepared.job.plan.automatic)
      plan_automatically(prepared, directory.file("profile.json"), std::move(stop));
    return std::make_unique<TrainRun>(std::move(prepared), directory);
  } catch (const Error&) {
    directory.discard();
    throw;
  }
}

int train(const TrainOptions& options) {
  const InterruptGuard interrupt;
  auto prepared = prepare_job(options.job_path, options.overrides);
  const auto path = options.run_dir.empty() ? default_run_dir(prepared.job.name)
                                            : std::filesystem::path(options.run_dir);
  RunDirectory directory(path, options.overwrite);
  try {
    start(std::move(prepared), directory, interrupt.token())->run(interrupt.token());
  } catch (const Error& error) {
    if (!interrupt.interrupted()) throw;
    fmt::print(stderr,
               "funcpipe: stopped; all functions are ended, metrics and cost so far are in {}\n",
               directory.path().string());
    return kExitInterrupted;
  }
  return kExitOk;
}

}  // namespace

void add_train_command(CLI::App& app, CommandResult& result) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train", "Train a model as a job file says");
  command->add_option("job", options->job_path, "Job file (docs/job.md)")->required();
  command->add_option("--run-dir", options->run_dir,
                      "Folder for weights, metrics and reports (default: runs/NAME-TIME)");
  command
      ->add_option("--set", options->overrides, "Change a key of the job: --set training.epochs=1")
      ->take_all()
      ->expected(1);
  command->add_flag("--overwrite", options->overwrite,
                    "Replace the files of another run in the run directory");
  command->callback([options, &result] { result.exit_code = train(*options); });
}

}  // namespace funcpipe
