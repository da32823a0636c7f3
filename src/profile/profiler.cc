#include "profile/profiler.h"

#include <algorithm>
#include <utility>

#include "base/backoff.h"
#include "base/checksum.h"
#include "base/error.h"
#include "core/memory_estimate.h"
#include "core/run_layout.h"
#include "data/parallel.h"
#include "profile/profile_function.h"
#include "profile/profile_result.h"
#include "profile/statistics.h"

namespace funcpipe {
namespace {

using Kind = InvocationOutcome::Kind;
using State = OptionProgress::Layer::State;

constexpr int kParallelTransfers = 8;
constexpr int kMicroBatches = 2;  // in flight, so that one does not find all of its data in caches
constexpr double kFillOfMemory = 0.9;  // by the estimate, of the layers measured together
constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr auto kThrottleBudget = std::chrono::minutes(2);

bool is_out_of_memory(const InvocationOutcome& outcome) {
  return outcome.kind == Kind::kOutOfMemory ||
         (outcome.kind == Kind::kFunctionError &&
          error_code_from_string(outcome.error_type) == ErrorCode::kResourceExhausted);
}

// Why a function ended that should not have; out of memory and out of time are no errors here.
Error failure_of(int memory_mb, const InvocationOutcome& outcome) {
  const auto name = fmt::format("the profiling function of {} MB", memory_mb);
  switch (outcome.kind) {
    case Kind::kFunctionError:
      return {error_code_from_string(outcome.error_type),
              fmt::format("{}: {}", name, outcome.error_message)};
    case Kind::kThrottled:
      return {ErrorCode::kResourceExhausted,
              fmt::format("{} could not be started: {}", name, outcome.error_message)};
    case Kind::kRejected:
      return {ErrorCode::kFailedPrecondition,
              fmt::format("the platform refused to start {}: {}", name, outcome.error_message)};
    case Kind::kUnreachable:
      return {ErrorCode::kUnavailable,
              fmt::format("the platform does not answer for {}: {}", name, outcome.error_message)};
    default:
      return {ErrorCode::kInternal,
              fmt::format("{} ended: {} ({})\n--- last lines of its log ---\n{}", name,
                          to_string(outcome.kind), outcome.error_message, outcome.log_tail)};
  }
}

std::string milliseconds(double seconds) { return fmt::format("{:.4g} ms", seconds * 1e3); }

void append(std::vector<double>& values, const std::vector<double>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

// Further rounds of the same layers.
void append(ProfileReport& report, const ProfileReport& more) {
  append(report.stretch, more.stretch);
  if (report.layers.empty()) {
    report.layers = more.layers;
    return;
  }
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    append(report.layers[i].forward, more.layers.at(i).forward);
    append(report.layers[i].backward, more.layers.at(i).backward);
    append(report.layers[i].update, more.layers.at(i).update);
  }
}

void scale(LayerReport& layer, double factor) {
  for (auto* values : {&layer.forward, &layer.backward, &layer.update}) {
    for (double& value : *values) value *= factor;
  }
}

std::string layers_text(int first, int last) {
  return last - first == 1 ? fmt::format("layer {}", first)
                           : fmt::format("layers {} to {}", first, last - 1);
}

}  // namespace

std::string ProfileRequest::fingerprint() const {
  const auto whole_job = job.to_json();
  nlohmann::json facts = {{"manifest", manifest.to_json()},
                          {"data", whole_job.at("data")},
                          {"training", whole_job.at("training")},
                          {"platform", whole_job.at("platform")},
                          {"rounds", rounds},
                          {"warm_up_passes", warm_up_passes},
                          {"round_seconds", round_seconds}};
  for (const auto& file : layer_files) facts["files"].push_back(to_hex(checksum(file.view())));
  return to_hex(checksum(as_bytes(facts.dump())));
}

Profiler::Profiler(const ProfileRequest& request, ObjectStore& store, FunctionPlatform& platform,
                   Clock& clock, ProfileEvents events)
    : request_(request),
      store_(store),
      platform_(platform),
      clock_(clock),
      events_(std::move(events)) {}

Profiler::~Profiler() = default;

ModelProfile Profiler::run(ProfileProgress progress, std::stop_token stop) {
  progress_ = std::move(progress);
  progress_.fingerprint = request_.fingerprint();
  auto options = request_.memory_mb;
  std::sort(options.begin(), options.end(), std::greater<>());
  for (const int memory_mb : options) {
    progress_.options[memory_mb].layers.resize(request_.manifest.layers.size());
    accounts_[memory_mb].memory_mb = memory_mb;
  }
  std::stop_source stop_all;
  const std::stop_callback pass_on(stop, [&] { stop_all.request_stop(); });
  upload_model();
  for_each_in_parallel(options.size(), request_.parallel, [&](std::size_t i) {
    try {
      measure_option(options[i], stop_all.get_token());
    } catch (...) {
      stop_all.request_stop();
      throw;
    }
  });
  std::erase_if(progress_.options, [&](const auto& item) {
    return std::find(options.begin(), options.end(), item.first) == options.end();
  });
  return make_profile(progress_, request_.manifest, request_.job, request_.job.platform.kind);
}

std::vector<WorkerAccount> Profiler::accounts() const {
  std::vector<WorkerAccount> result;
  for (const auto& [memory_mb, account] : accounts_) {
    result.push_back(account);
    result.back().worker = {static_cast<int>(result.size()) - 1, 0};
  }
  return result;
}

void Profiler::upload_model() {
  const RunLayout layout(request_.run);
  const auto& layers = request_.manifest.layers;
  put(store_, layout.model_file("manifest.json"), as_bytes(request_.manifest.to_json().dump()));
  for_each_in_parallel(layers.size(), kParallelTransfers, [&](std::size_t i) {
    put(store_, layout.model_file(layers[i].file), request_.layer_files[i].view());
  });
}

void Profiler::measure_option(int memory_mb, std::stop_token stop) {
  if (!snapshot(memory_mb).start) measure_start(memory_mb, stop);
  if (!snapshot(memory_mb).links) measure_links(memory_mb, stop);
  if (snapshot(memory_mb).open_layers() > 0) measure_layers(memory_mb, stop);
}

// A cold start is what the first call of a function takes beside its handler, more than the second.
void Profiler::measure_start(int memory_mb, std::stop_token stop) {
  const auto call = [&](InvocationOutcome& outcome) {
    const auto begin = clock_.now();
    outcome = invoke(memory_mb, task(ProfileTask::Kind::kStart), stop);
    return to_seconds(clock_.now() - begin) / request_.time_dilation -
           to_seconds(outcome.usage.duration);
  };
  OptionProgress::Start start;
  InvocationOutcome first, second;
  const double first_seconds = call(first);
  const bool fits = !is_out_of_memory(first);
  if (fits) {
    if (first.kind != Kind::kSucceeded) throw failure_of(memory_mb, first);
    const double second_seconds = call(second);
    if (second.kind != Kind::kSucceeded) throw failure_of(memory_mb, second);
    if (first.usage.cold_start)
      start.cold_start_seconds = std::max(0.0, first_seconds - second_seconds);
    start.base_memory_bytes =
        static_cast<std::uint64_t>(first.usage.max_memory_used_mb) * kMebibyte;
    note(memory_mb, fmt::format("cold start {:.2f} s, {} MB before any layer",
                                start.cold_start_seconds, first.usage.max_memory_used_mb));
  } else {
    start.base_memory_bytes = static_cast<std::uint64_t>(memory_mb) * kMebibyte;
    note(memory_mb, "too little for a worker without any layer");
  }
  const std::lock_guard lock(mutex_);
  auto& option = progress_.options.at(memory_mb);
  option.start = start;
  if (!fits) {
    option.links.emplace();
    for (auto& layer : option.layers) layer.state = State::kDoesNotFit;
  }
  progressed();
}

void Profiler::measure_links(int memory_mb, std::stop_token stop) {
  const auto outcome = invoke(memory_mb, task(ProfileTask::Kind::kLinks), std::move(stop));
  if (outcome.kind != Kind::kSucceeded) throw failure_of(memory_mb, outcome);
  auto links = ProfileReport::from_text(outcome.payload).links.value();
  links.uplink_bytes_per_second *= request_.time_dilation;
  links.downlink_bytes_per_second *= request_.time_dilation;
  links.latency_seconds /= request_.time_dilation;
  note(memory_mb,
       fmt::format("{}/s up, {}/s down, {} a request", format_bytes(links.uplink_bytes_per_second),
                   format_bytes(links.downlink_bytes_per_second),
                   milliseconds(links.latency_seconds)));
  const std::lock_guard lock(mutex_);
  progress_.options.at(memory_mb).links = links;
  progressed();
}

// As many layers together as run together: first by estimate, then by trial.
void Profiler::measure_layers(int memory_mb, std::stop_token stop) {
  int most_layers = static_cast<int>(request_.manifest.layers.size());
  while (true) {
    const auto option = snapshot(memory_mb);
    if (option.open_layers() == 0) return;
    const auto group = next_group(option, memory_mb, most_layers);
    const int count = group.last - group.first;
    if (measure_group(memory_mb, group, stop)) {
      most_layers *= 2;
    } else if (count > 1) {
      most_layers = count / 2;
    } else {
      const auto& layer = request_.manifest.layers.at(static_cast<std::size_t>(group.first));
      note(memory_mb,
           fmt::format("layer {} ('{}', {}) does not fit", group.first, layer.name, layer.kind));
      const std::lock_guard lock(mutex_);
      progress_.options.at(memory_mb).layers.at(static_cast<std::size_t>(group.first)).state =
          State::kDoesNotFit;
      progressed();
    }
  }
}

Profiler::Group Profiler::next_group(const OptionProgress& option, int memory_mb,
                                     int most_layers) const {
  const auto is_open = [&](int layer) {
    return option.layers.at(static_cast<std::size_t>(layer)).state == State::kOpen;
  };
  const int layers = static_cast<int>(option.layers.size());
  const auto& training = request_.job.training;
  const double limit = kFillOfMemory * memory_mb * static_cast<double>(kMebibyte);
  Group group;
  while (!is_open(group.first)) ++group.first;
  group.last = group.first + 1;
  while (group.last < layers && is_open(group.last) && group.last - group.first < most_layers) {
    const auto estimate = estimate_stage_memory(
        request_.manifest, {group.first, group.last + 1, training.micro_batch_size, kMicroBatches,
                            training.optimizer, 1});
    if (static_cast<double>(estimate.total()) > limit) break;
    ++group.last;
  }
  return group;
}

// False: together these layers do not run within the function's memory, or its time limit.
bool Profiler::measure_group(int memory_mb, Group group, std::stop_token stop) {
  auto layer_task = task(ProfileTask::Kind::kLayers);
  layer_task.first_layer = group.first;
  layer_task.last_layer = group.last;
  ProfileReport all;
  bool tried_afresh = false;
  while (std::cmp_less(all.stretch.size(), request_.rounds)) {
    layer_task.rounds = request_.rounds - static_cast<int>(all.stretch.size());
    const auto outcome = invoke(memory_mb, layer_task, stop);
    if (is_out_of_memory(outcome)) {
      // A process that has run other layers before may hold memory of theirs.
      if (!outcome.usage.cold_start && !std::exchange(tried_afresh, true)) continue;
      if (group.last - group.first > 1 || layer_task.micro_batches == 1) return false;
      layer_task.micro_batches = 1;
      continue;
    }
    if (outcome.kind == Kind::kTimedOut) return false;
    if (outcome.kind != Kind::kSucceeded) throw failure_of(memory_mb, outcome);
    const auto report = ProfileReport::from_text(outcome.payload);
    if (report.stretch.empty()) return false;
    append(all, report);
  }
  const std::lock_guard lock(mutex_);
  accept(progress_.options.at(memory_mb), group, all);
  double forward = 0, backward = 0;
  for (auto i = group.first; i < group.last; ++i) {
    const auto& report =
        progress_.options.at(memory_mb).layers.at(static_cast<std::size_t>(i)).report;
    forward += quartiles_of(report.forward).median;
    backward += quartiles_of(report.backward).median;
  }
  events_.note(fmt::format("{} MB: {}: forward {}, backward {}", memory_mb,
                           layers_text(group.first, group.last), milliseconds(forward),
                           milliseconds(backward)));
  progressed();
  return true;
}

void Profiler::accept(OptionProgress& option, Group group, const ProfileReport& report) {
  const double stretch = quartiles_of(report.stretch).median;
  for (int i = group.first; i < group.last; ++i) {
    auto layer = report.layers.at(static_cast<std::size_t>(i - group.first));
    scale(layer, stretch / request_.time_dilation);
    option.layers.at(static_cast<std::size_t>(i)) = {State::kMeasured, std::move(layer)};
  }
}

ProfileTask Profiler::task(ProfileTask::Kind kind) const {
  ProfileTask task;
  task.kind = kind;
  task.run = request_.run;
  task.store = request_.store_url;
  task.job = request_.job;
  task.micro_batches = kMicroBatches;
  task.warm_up_passes = request_.warm_up_passes;
  task.round_seconds = request_.round_seconds;
  task.burst_bytes = request_.burst_bytes;
  task.transfer_seconds = request_.transfer_seconds;
  return task;
}

InvocationOutcome Profiler::invoke(int memory_mb, const ProfileTask& task, std::stop_token stop) {
  Backoff backoff{{std::chrono::milliseconds(200), std::chrono::seconds(5), 2, 0.5}};
  const auto throttled_until = Deadline::after(clock_, kThrottleBudget);
  while (true) {
    const auto invocation =
        platform_.invoke(request_.function_name(memory_mb), task.to_json().dump());
    std::optional<InvocationOutcome> outcome;
    while (!outcome) {
      if (stop.stop_requested()) fail(ErrorCode::kCancelled, "stopped on request");
      outcome = invocation->wait(Deadline::after(clock_, kPollInterval));
    }
    book(memory_mb, *outcome);
    if (outcome->kind != Kind::kThrottled || throttled_until.expired(clock_)) return *outcome;
    clock_.sleep_for(backoff.next(), stop);
  }
}

void Profiler::book(int memory_mb, const InvocationOutcome& outcome) {
  if (outcome.kind == Kind::kThrottled || outcome.kind == Kind::kRejected) return;
  const std::lock_guard lock(mutex_);
  auto& account = accounts_.at(memory_mb);
  ++account.invocations;
  account.cold_starts += outcome.usage.cold_start ? 1 : 0;
  account.billed += outcome.usage.billed;
  account.max_memory_used_mb =
      std::max(account.max_memory_used_mb, outcome.usage.max_memory_used_mb);
  if (outcome.kind == Kind::kSucceeded)
    account.usage += ProfileReport::from_text(outcome.payload).usage;
}

// With the mutex held.
void Profiler::progressed() { events_.progressed(progress_); }

void Profiler::note(int memory_mb, const std::string& text) {
  const std::lock_guard lock(mutex_);
  events_.note(fmt::format("{} MB: {}", memory_mb, text));
}

OptionProgress Profiler::snapshot(int memory_mb) const {
  const std::lock_guard lock(mutex_);
  return progress_.options.at(memory_mb);
}

}  // namespace funcpipe
