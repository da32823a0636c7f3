#include "cli/profiling.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cli/local_run.h"
#include "cli/process_start.h"
#include "coordinator/coordinator.h"
#include "platform/lambda_client.h"
#include "platform/local_host.h"
#include "platform/local_host_process.h"
#include "profile/profiler.h"
#include "report/cost.h"
#include "store/counting_store.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

std::filesystem::path beside(const std::filesystem::path& output, const char* suffix) {
  auto path = output;
  path += suffix;
  return path;
}

std::filesystem::path store_folder(const std::filesystem::path& output) {
  return beside(output, ".store");
}

// What an earlier run has measured of the same; nothing when it was of something else.
ProfileProgress earlier_progress(const std::filesystem::path& path,
                                 const std::string& fingerprint) {
  if (!std::filesystem::exists(path)) return {};
  try {
    auto progress = ProfileProgress::from_text(read_text_file(path));
    if (progress.fingerprint == fingerprint) {
      fmt::print(stderr, "going on with what {} holds (--fresh: from the start)\n", path.string());
      return progress;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
  }
  fmt::print(stderr, "{} is of another job or other options: starting anew\n", path.string());
  return {};
}

// Removes what a run has put into a store, at the end of this object's life.
class RunObjects {
 public:
  RunObjects(ObjectStore& store, std::string run) : store_(store), run_(std::move(run)) {}
  ~RunObjects() {
    try {
      for (const auto& object : list_all(store_, run_ + "/")) store_.remove(object.key);
    } catch (const Error& error) {
      fmt::print(stderr, "objects of the profile are left in the store under '{}/': {}\n", run_,
                 error.what());
    }
  }
  RunObjects(const RunObjects&) = delete;
  RunObjects& operator=(const RunObjects&) = delete;

 private:
  ObjectStore& store_;
  const std::string run_;
};

void check(const ProfilingOptions& options, const LocalPlatformSpec& local) {
  if (std::filesystem::is_directory(options.output)) {
    fail(ErrorCode::kInvalidArgument, "'{}' is a folder; the profile needs the name of a file",
         options.output.string());
  }
  if (options.parallel > local.max_concurrency) {
    fail(ErrorCode::kInvalidArgument,
         "--parallel {} is more than the {} functions at a time that max_concurrency allows",
         options.parallel, local.max_concurrency);
  }
}

std::vector<int> memory_options(const PreparedJob& prepared, const ProfilingOptions& options) {
  if (options.memory_mb.empty()) return default_memory_options(prepared.job);
  const std::set<int> sorted(options.memory_mb.begin(), options.memory_mb.end());
  return {sorted.begin(), sorted.end()};
}

class ProfileRun {
 public:
  // Starts the local platform.
  ProfileRun(const PreparedJob& prepared, const ProfilingOptions& options)
      : prepared_(prepared),
        options_(options),
        memory_mb_(memory_options(prepared, options)),
        id_(unique_run_id(prepared.job.name)),
        own_store_(prepared.job.store.empty() ? store_folder(options.output)
                                              : std::filesystem::path()),
        store_url_(prepared.job.store.empty() ? url_of(store_folder(options.output))
                                              : prepared.job.store),
        store_(open_store(store_url_), store_usage_),
        objects_(store_, id_),
        host_({executable_path(), "host", "--control-fd"},
              local_host_config(prepared.job.platform.local, {memory_mb_.begin(), memory_mb_.end()},
                                {})),
        platform_({host_.endpoint()}) {
    for (int i = 0; i < prepared.model.layer_count(); ++i)
      layer_files_.push_back(prepared.model.layer_file(i));
  }

  ModelProfile run(const std::stop_token& stop) {
    const auto request = make_request();
    const auto partial = partial_profile(options_.output);
    ProfileEvents events;
    events.note = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
    events.progressed = [&](const ProfileProgress& progress) {
      write_file(partial, progress.to_json().dump());
    };
    auto earlier =
        options_.fresh ? ProfileProgress() : earlier_progress(partial, request.fingerprint());
    print_start();
    Profiler profiler(request, store_, platform_, clock_, std::move(events));
    try {
      auto profile = profiler.run(std::move(earlier), stop);
      print_cost(profiler);
      return profile;
    } catch (...) {
      print_cost(profiler);
      throw;
    }
  }

 private:
  ProfileRequest make_request() const {
    const double dilation = prepared_.job.platform.local.time_dilation;
    return {.job = prepared_.job,
            .manifest = prepared_.model.manifest(),
            .layer_files = layer_files_,
            .run = id_,
            .store_url = store_url_,
            .memory_mb = memory_mb_,
            .function_name = function_name,
            .rounds = options_.rounds,
            .warm_up_passes = options_.warm_up_passes,
            .time_dilation = dilation,
            .parallel = options_.parallel};
  }

  void print_start() const {
    fmt::print(stderr, "{}: model {} ({} layers), micro-batches of {}; platform: local ({})\n",
               prepared_.job.name, prepared_.model.manifest().name, prepared_.model.layer_count(),
               prepared_.job.training.micro_batch_size, host_.isolation());
  }

  void print_cost(const Profiler& profiler) const {
    const auto spec = local_spec();
    const auto accounts = profiler.accounts();
    auto cost = total_cost(accounts, spec);
    cost += cost_of(store_.snapshot(), spec);
    int invocations = 0;
    for (const auto& account : accounts) invocations += account.invocations;
    fmt::print(stderr, "{} invocations, {:.1f} GB-s; at AWS prices ${:.5f}\n", invocations,
               cost.gb_seconds, cost.total_usd());
  }

  const PreparedJob& prepared_;
  const ProfilingOptions& options_;
  const std::vector<int> memory_mb_;
  const std::string id_;
  // Store and objects go after the host, when nobody writes any more.
  const OwnStore own_store_;
  const std::string store_url_;
  UsageCounter store_usage_;
  CountingStore store_;
  const RunObjects objects_;
  SteadyClock clock_;
  const LocalHostProcess host_;
  LambdaClient platform_;
  std::vector<Buffer> layer_files_;
};

}  // namespace

std::filesystem::path partial_profile(const std::filesystem::path& output) {
  return beside(output, ".partial");
}

std::vector<int> default_memory_options(const JobSpec& job) {
  if (job.plan.automatic && !job.plan.automatic->memory_mb.empty()) {
    const std::set<int> wishes(job.plan.automatic->memory_mb.begin(),
                               job.plan.automatic->memory_mb.end());
    return {wishes.begin(), wishes.end()};
  }
  const auto spec = local_spec();
  const auto& local = job.platform.local;
  const double cores = std::thread::hardware_concurrency();
  std::set<int> options(job.plan.memory_mb.begin(), job.plan.memory_mb.end());
  for (const int memory_mb : {512, 1024, 1769, 2048, 3072, 4096, 6144, 8192, 10240}) {
    if (vcpus(spec, memory_mb) / local.time_dilation <= cores) options.insert(memory_mb);
  }
  return {options.begin(), options.end()};
}

ModelProfile measure_profile(const PreparedJob& prepared, const ProfilingOptions& options,
                             const std::stop_token& stop) {
  check(options, prepared.job.platform.local);
  auto profile = ProfileRun(prepared, options).run(stop);
  write_file(options.output, profile.to_json().dump(1) + "\n");
  std::error_code ignored;
  std::filesystem::remove(partial_profile(options.output), ignored);
  return profile;
}

}  // namespace funcpipe
