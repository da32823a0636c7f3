#include <climits>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <malloc.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/worker_stores.h"
#include "core/platform_spec.h"
#include "core/worker_task.h"
#include "nn/torch_runtime.h"
#include "nn/torch_stage.h"
#include "platform/runtime_api_client.h"
#include "profile/profile_function.h"
#include "runtime/worker.h"

namespace funcpipe {
namespace {

std::string required_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    fail(ErrorCode::kFailedPrecondition,
         "{} is not set: `funcpipe worker` is started by a function platform, not by hand", name);
  }
  return value;
}

int memory_mb_of_function() {
  return std::atoi(required_environment("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").c_str());
}

std::unique_ptr<StageCompute> make_stage(StageSource source, int threads) {
  TorchStageOptions options;
  for (std::size_t i = 0; i < source.layers.size(); ++i) {
    options.layers.push_back({std::move(source.layers[i]), std::move(source.layer_files[i])});
  }
  options.first_layer = source.first_layer;
  options.is_last = source.is_last;
  options.model_inputs = std::move(source.model_inputs);
  options.mean = source.job.data.mean;
  options.scale = source.job.data.scale;
  options.loss = source.job.training.loss;
  options.optimizer = source.job.training.optimizer;
  options.seed = source.job.seed;
  options.threads = threads;
  return make_torch_stage(std::move(options));
}

// CPU time per second of real time.
double cpus_of(const JobSpec& job, int memory_mb) {
  const auto& local = job.platform.local;
  if (!local.cpu_limit) return std::numeric_limits<double>::infinity();
  return vcpus(aws_lambda_spec(), memory_mb) / local.time_dilation;
}

std::string handle_profile_task(const FunctionEvent& event, WorkerStores& stores, Clock& clock,
                                int memory_mb, int threads) {
  const auto task = ProfileTask::from_text(event.payload);
  const auto before = stores.usage();
  const ProfileEnvironment environment{[&](const std::string& url) { return stores.open(url); },
                                       [&] { return stores.usage() - before; },
                                       clock,
                                       Deadline::at(event.deadline),
                                       memory_mb,
                                       threads,
                                       cpus_of(task.job, memory_mb)};
  return run_profile_task(task, environment).to_json().dump();
}

std::string handle(const FunctionEvent& event, WorkerStores& stores, Clock& clock, int memory_mb,
                   int threads) {
  if (is_profile_task(event.payload))
    return handle_profile_task(event, stores, clock, memory_mb, threads);
  const auto task = WorkerTask::from_text(event.payload);
  const auto before = stores.usage();
  const WorkerEnvironment environment{
      [&](const std::string& url) { return stores.open(url); },
      [&] { return stores.usage() - before; },
      [&](StageSource source) { return make_stage(std::move(source), threads); },
      clock,
      Deadline::at(event.deadline),
      static_cast<std::uint64_t>(memory_mb) * kMebibyte,
      {}};
  return run_worker(task, environment).to_json().dump();
}

// A step frees all its activations and the next one allocates them again: by default glibc gives the
// memory back to the kernel in between, and each step pays for thousands of page faults.
void keep_freed_memory() {
  constexpr int kLargestMmapThreshold = 32 << 20;  // M_MMAP_THRESHOLD's limit, see mallopt(3)
  mallopt(M_MMAP_THRESHOLD, kLargestMmapThreshold);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

// Serves one invocation after the other until the platform ends the process.
[[noreturn]] void serve(RuntimeApiClient& runtime) {
  SteadyClock clock;
  const int memory_mb = memory_mb_of_function();
  const int threads = thread_count(aws_lambda_spec(), memory_mb);
  configure_torch(threads);
  const auto stores = WorkerStores::from_environment(clock);
  while (true) {
    const auto event = runtime.next();
    std::optional<std::string> answer;
    try {
      answer = handle(event, *stores, clock, memory_mb, threads);
    } catch (const Error& error) {
      runtime.report_error(event.request_id, to_string(error.code()), error.what());
    } catch (const std::bad_alloc&) {
      runtime.report_error(event.request_id, to_string(ErrorCode::kResourceExhausted),
                           "the function's memory does not suffice");
    } catch (const std::exception& error) {
      runtime.report_error(event.request_id, to_string(ErrorCode::kInternal), error.what());
    }
    if (answer) runtime.respond(event.request_id, *std::move(answer));
  }
}

int worker() {
  keep_freed_memory();
  RuntimeApiClient runtime(required_environment("AWS_LAMBDA_RUNTIME_API"));
  try {
    serve(runtime);
  } catch (const std::exception& error) {
    fmt::print(stderr, "funcpipe worker: {}\n", error.what());
    return kExitError;
  }
}

}  // namespace

void add_worker_command(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand(
      "worker", "Run as a function (started by a platform through the Lambda Runtime API)");
  command->callback([&result] { result.exit_code = worker(); });
}

}  // namespace funcpipe
