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
      return {outcome.kind == Kind::kTimedOut ? ErrorCode::kDeadlineExceeded : ErrorCode::kInternal,
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

ModelProfile Profiler::run(ProfileProgress progress, const std::stop_token& stop) {
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
  if (!std::all_of(options.begin(), options.end(),
                   [&](int memory_mb) { return progress_.options.at(memory_mb).complete(); }))
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

void Profiler::measure_option(int memory_mb, const std::stop_token& stop) {
  if (!snapshot(memory_mb).start) measure_start(memory_mb, stop);
  if (!snapshot(memory_mb).links) measure_links(memory_mb, stop);
  if (snapshot(memory_mb).open_layers() > 0) measure_layers(memory_mb, stop);
}

// Two calls: the first one of a new function starts it.
void Profiler::measure_start(int memory_mb, const std::stop_token& stop) {
  const auto start = task(ProfileTask::Kind::kStart);
  const auto first = call(memory_mb, start, stop);
  if (is_out_of_memory(first.outcome)) return mark_too_small(memory_mb);
  if (first.outcome.kind != Kind::kSucceeded) throw failure_of(memory_mb, first.outcome);
  const auto second = call(memory_mb, start, stop);
  if (second.outcome.kind != Kind::kSucceeded) throw failure_of(memory_mb, second.outcome);
  accept_start(memory_mb, first, second);
}

// A cold start is what the first call takes beside its handler, more than the second.
void Profiler::accept_start(int memory_mb, const Call& first, const Call& second) {
  const auto beside_handler = [&](const Call& call) {
    return to_seconds(call.duration) / request_.time_dilation -
           to_seconds(call.outcome.usage.duration);
  };
  const auto& usage = first.outcome.usage;
  OptionProgress::Start start;
  if (usage.cold_start)
    start.cold_start_seconds = std::max(0.0, beside_handler(first) - beside_handler(second));
  start.base_memory_bytes = static_cast<std::uint64_t>(usage.max_memory_used_mb) * kMebibyte;
  note(memory_mb, fmt::format("cold start {:.2f} s, {} MB before any layer",
                              start.cold_start_seconds, usage.max_memory_used_mb));
  const std::lock_guard lock(mutex_);
  progress_.options.at(memory_mb).start = start;
  events_.progressed(progress_);
}

void Profiler::mark_too_small(int memory_mb) {
  note(memory_mb, "too little for a worker without any layer");
  const std::lock_guard lock(mutex_);
  auto& option = progress_.options.at(memory_mb);
  option.start = {0, static_cast<std::uint64_t>(memory_mb) * kMebibyte};
  option.links.emplace();
  for (auto& layer : option.layers) layer.state = State::kDoesNotFit;
  events_.progressed(progress_);
}

void Profiler::measure_links(int memory_mb, const std::stop_token& stop) {
  const auto outcome = call(memory_mb, task(ProfileTask::Kind::kLinks), stop).outcome;
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
  events_.progressed(progress_);
}

// As many layers together as run together: first by estimate, then by trial.
void Profiler::measure_layers(int memory_mb, const std::stop_token& stop) {
  const int all = static_cast<int>(request_.manifest.layers.size());
  int most = all;
  while (true) {
    const auto option = snapshot(memory_mb);
    if (option.open_layers() == 0) return;
    const auto group = next_group(option, memory_mb, most);
    const int count = group.last - group.first;
    const auto trial = measure_group(memory_mb, group, stop);
    if (trial == Trial::kMeasured) {
      most = std::min(all, 2 * most);
    } else if (count > 1) {
      most = count / 2;
    } else {
      mark_unfit(memory_mb, group.first, trial);
    }
  }
}

void Profiler::mark_unfit(int memory_mb, int index, Trial trial) {
  const auto& layer = request_.manifest.layers.at(static_cast<std::size_t>(index));
  note(memory_mb, fmt::format("layer {} ('{}', {}) does not fit{}", index, layer.name, layer.kind,
                              trial == Trial::kOutOfTime ? " into the time limit" : ""));
  const std::lock_guard lock(mutex_);
  progress_.options.at(memory_mb).layers.at(static_cast<std::size_t>(index)).state =
      State::kDoesNotFit;
  events_.progressed(progress_);
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

Profiler::Trial Profiler::measure_group(int memory_mb, Group group, const std::stop_token& stop) {
  auto layer_task = task(ProfileTask::Kind::kLayers);
  layer_task.first_layer = group.first;
  layer_task.last_layer = group.last;
  ProfileReport all;
  bool tried_afresh = false;
  while (std::cmp_less(all.stretch.size(), request_.rounds)) {
    layer_task.rounds = request_.rounds - static_cast<int>(all.stretch.size());
    const auto outcome = call(memory_mb, layer_task, stop).outcome;
    if (is_out_of_memory(outcome)) {
      // A process that has run other layers before may hold memory of theirs.
      if (!outcome.usage.cold_start && !std::exchange(tried_afresh, true)) continue;
      if (group.last - group.first > 1 || layer_task.micro_batches == 1) return Trial::kOutOfMemory;
      layer_task.micro_batches = 1;
      continue;
    }
    if (outcome.kind == Kind::kTimedOut) return Trial::kOutOfTime;
    if (outcome.kind != Kind::kSucceeded) throw failure_of(memory_mb, outcome);
    const auto report = ProfileReport::from_text(outcome.payload);
    if (report.stretch.empty()) return Trial::kOutOfTime;
    append(all, report);
  }
  accept_group(memory_mb, group, all);
  return Trial::kMeasured;
}

void Profiler::accept_group(int memory_mb, Group group, const ProfileReport& report) {
  const double stretch = quartiles_of(report.stretch).median;
  double forward = 0, backward = 0;
  auto layers = report.layers;
  for (auto& layer : layers) {
    scale(layer, stretch / request_.time_dilation);
    forward += quartiles_of(layer.forward).median;
    backward += quartiles_of(layer.backward).median;
  }
  note(memory_mb, fmt::format("{}: forward {}, backward {}", layers_text(group.first, group.last),
                              milliseconds(forward), milliseconds(backward)));
  const std::lock_guard lock(mutex_);
  auto& option = progress_.options.at(memory_mb);
  for (std::size_t i = 0; i < layers.size(); ++i)
    option.layers.at(static_cast<std::size_t>(group.first) + i) = {State::kMeasured,
                                                                   std::move(layers[i])};
  events_.progressed(progress_);
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

Profiler::Call Profiler::call(int memory_mb, const ProfileTask& task, const std::stop_token& stop) {
  Backoff backoff{{std::chrono::milliseconds(200), std::chrono::seconds(5), 2, 0.5}};
  const auto throttled_until = Deadline::after(clock_, kThrottleBudget);
  while (true) {
    const auto begin = clock_.now();
    const auto invocation =
        platform_.invoke(request_.function_name(memory_mb), task.to_json().dump());
    std::optional<InvocationOutcome> outcome;
    while (!outcome) {
      if (stop.stop_requested()) fail(ErrorCode::kCancelled, "stopped on request");
      outcome = invocation->wait(Deadline::after(clock_, kPollInterval));
    }
    book(memory_mb, *outcome);
    if (outcome->kind != Kind::kThrottled || throttled_until.expired(clock_))
      return {*std::move(outcome), clock_.now() - begin};
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

void Profiler::note(int memory_mb, const std::string& text) {
  const std::lock_guard lock(mutex_);
  events_.note(fmt::format("{} MB: {}", memory_mb, text));
}

OptionProgress Profiler::snapshot(int memory_mb) const {
  const std::lock_guard lock(mutex_);
  return progress_.options.at(memory_mb);
}

}  // namespace funcpipe
