#include "platform/sandbox.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/error.h"
#include "platform/report_line.h"
#include "platform/sandbox_environment.h"

namespace funcpipe {
namespace {

constexpr Duration kMemoryWatchPeriod = std::chrono::milliseconds(50);
constexpr Duration kInitErrorGrace = std::chrono::milliseconds(200);
constexpr std::uint64_t kAnswerSlackBytes = 100;  // the service allows so much above its limit

TimePoint now() { return std::chrono::steady_clock::now(); }

std::int64_t unix_ms_after(Duration delay) {
  const auto time = std::chrono::system_clock::now() + delay;
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string error_json(std::string_view type, const std::string& message) {
  return nlohmann::json{{"errorType", type}, {"errorMessage", message}}.dump();
}

}  // namespace

Sandbox::Sandbox(const Surroundings& host, const LocalFunction& function, int number,
                 Callbacks callbacks)
    : host_(host),
      function_(function),
      name_(fmt::format("{}-{}", function.name, number)),
      callbacks_(std::move(callbacks)),
      runtime_api_(host.loop, *this) {
  start_timer_ = host_.loop.after(real(host_.config.cold_start), [this] { start(); });
}

Sandbox::~Sandbox() = default;

Duration Sandbox::real(Duration platform_time) const {
  return from_seconds(to_seconds(platform_time) * host_.config.time_dilation);
}

Duration Sandbox::platform(Duration real_time) const {
  return from_seconds(to_seconds(real_time) / host_.config.time_dilation);
}

void Sandbox::start() {
  try {
    start_process();
  } catch (const std::exception& error) {
    spdlog::error("local host: cannot start {}: {}", name_, error.what());
    const ExecutionResult result{true, error_json("Runtime.StartError", error.what()), "", {}};
    state_ = State::kEnded;
    if (execution_) callbacks_.finished(*this, *std::exchange(execution_, std::nullopt), result);
    callbacks_.ended(*this, std::nullopt);
  }
}

void Sandbox::start_process() {
  const auto& config = host_.config;
  output_.emplace(host_.loop, config.log_dir.empty() ? std::filesystem::path()
                                                     : config.log_dir / (name_ + ".log"));
  CgroupLimits limits;
  if (config.memory_limit) limits.memory_bytes = function_.memory_mb * kMebibyte;
  if (config.cpu_limit) limits.cpus = vcpus(host_.spec, function_.memory_mb) / config.time_dilation;
  ChildProcessOptions options;
  options.command = config.command;
  options.environment = sandbox_environment(config, host_.spec, function_, runtime_api_.address());
  options.output_fd = output_->writer();
  options.die_with_parent = true;
  if (host_.cgroups != nullptr) {
    cgroup_ = host_.cgroups->create(name_, limits);
    options.cgroup_fds = cgroup_->entrances();
  }
  state_ = State::kStarting;
  started_ = now();
  process_.emplace(ChildProcess::start(options));
  output_->close_writer();
  end_watch_ = host_.loop.watch(process_->pidfd(), [this] { process_ended(); });
  arm_time_limit();
  watch_memory();
}

void Sandbox::assign(Execution execution) {
  execution_ = std::move(execution);
  if (state_ == State::kReady && !poll_) arm_time_limit();  // it has to ask some time
  if (!poll_) return;
  const auto poll = *std::exchange(poll_, std::nullopt);
  // A process that died while it waited must not take the event with it.
  if (process_->poll()) return;
  deliver(poll);
}

void Sandbox::end() {
  if (state_ == State::kEnding || state_ == State::kEnded) return;
  start_timer_.reset();
  const bool running = state_ != State::kWaiting;
  state_ = running ? State::kEnding : State::kEnded;
  if (running) return process_->kill();
  callbacks_.ended(*this, std::exchange(execution_, std::nullopt));
}

void Sandbox::abandon() {
  if (process_) process_->kill();
}

void Sandbox::on_next(HttpServer::Responder poll) {
  if (state_ == State::kStarting) {
    initialisation_ = now() - started_;
    state_ = State::kReady;
    limit_timer_.reset();
    idle_since_ = now();
  }
  if (state_ != State::kReady && state_ != State::kRunning) return;
  if (execution_) return deliver(poll);
  poll_ = poll;
  poll.on_disconnect([this] { poll_.reset(); });
}

// Also for a process that asks again without having answered: its first poll died on the way.
void Sandbox::deliver(const HttpServer::Responder& poll) {
  if (state_ != State::kRunning) {
    state_ = State::kRunning;
    delivered_ = now();
    execution_->event.deadline_unix_ms = unix_ms_after(real(host_.config.time_limit));
    arm_time_limit();
    watch_memory();
    if (execution_->kill_after) {
      kill_timer_ = host_.loop.after(*execution_->kill_after, [this] { process_->kill(); });
    }
    if (!cold_) output_->forget_tail();
    output_->note(
        fmt::format("START RequestId: {} Version: $LATEST\n", execution_->event.request_id));
  }
  send_event(poll, execution_->event);
}

RuntimeApiHandler::Verdict Sandbox::check(std::string_view request_id) const {
  if (state_ == State::kRunning && execution_ && request_id == execution_->event.request_id) {
    return Verdict::kAccepted;
  }
  return request_id == finished_id_ ? Verdict::kWrongState : Verdict::kUnknownRequest;
}

RuntimeApiHandler::Verdict Sandbox::on_response(std::string_view request_id, std::string body) {
  const Verdict verdict = check(request_id);
  if (verdict != Verdict::kAccepted) return verdict;
  const std::uint64_t limit = host_.spec.max_request_bytes + kAnswerSlackBytes;
  if (body.size() > limit) {
    finish(true,
           error_json("Function.ResponseSizeTooLarge",
                      fmt::format("Response payload size exceeded maximum allowed payload "
                                  "size ({} bytes).",
                                  limit)),
           State::kReady);
    return Verdict::kTooLarge;
  }
  finish(false, std::move(body), State::kReady);
  return Verdict::kAccepted;
}

RuntimeApiHandler::Verdict Sandbox::on_error(std::string_view request_id, std::string body) {
  const Verdict verdict = check(request_id);
  if (verdict == Verdict::kAccepted) finish(true, std::move(body), State::kReady);
  return verdict;
}

RuntimeApiHandler::Verdict Sandbox::on_init_error(std::string body) {
  if (state_ != State::kStarting) return Verdict::kWrongState;
  init_error_ = std::move(body);
  end_reason_ = EndReason::kInitError;
  kill_timer_ = host_.loop.after(kInitErrorGrace, [this] { process_->kill(); });
  return Verdict::kAccepted;
}

Usage Sandbox::usage_until(TimePoint end) const {
  Usage usage;
  const bool initialised = state_ != State::kStarting;
  usage.cold_start = cold_;
  if (cold_) usage.initialisation = platform(initialised ? initialisation_ : end - started_);
  if (initialised) usage.duration = platform(end - delivered_);
  usage.billed = billed_duration(usage.initialisation, usage.duration);
  usage.memory_mb = function_.memory_mb;
  usage.max_memory_used_mb = process_->peak_memory_mb();
  if (end_reason_ == EndReason::kMemoryLimit) usage.max_memory_used_mb = function_.memory_mb;
  return usage;
}

void Sandbox::finish(bool failed, std::string body, State next) {
  limit_timer_.reset();
  kill_timer_.reset();
  memory_timer_.reset();
  const std::string id = execution_->event.request_id;
  ExecutionResult result{failed, std::move(body), "", usage_until(now())};
  output_->note(fmt::format("END RequestId: {}\n{}", id, format_report(id, result.usage)));
  result.log_tail = output_->tail();
  cold_ = false;
  finished_id_ = id;
  idle_since_ = now();
  state_ = next;
  callbacks_.finished(*this, *std::exchange(execution_, std::nullopt), result);
}

void Sandbox::arm_time_limit() {
  limit_timer_ =
      host_.loop.after(real(host_.config.time_limit), [this] { kill_for(EndReason::kTimeLimit); });
}

// Where no cgroup limits memory: looks at the resident set while the process works.
void Sandbox::watch_memory() {
  const bool needed =
      host_.config.memory_limit && (host_.cgroups == nullptr || !host_.cgroups->can_limit_memory());
  if (!needed) return;
  memory_timer_ = host_.loop.after(kMemoryWatchPeriod, [this] {
    if (process_->resident_bytes() > function_.memory_mb * kMebibyte) {
      return kill_for(EndReason::kMemoryLimit);
    }
    watch_memory();
  });
}

// The outcome is reported once the process is really gone, so that nothing it does can follow.
void Sandbox::kill_for(EndReason reason) {
  end_reason_ = reason;
  process_->kill();
}

std::string Sandbox::end_report(const ProcessEnd& end) const {
  const std::string prefix = "RequestId: " + execution_->event.request_id + " Error: ";
  switch (end_reason_) {
    case EndReason::kTimeLimit:
      return error_json("Sandbox.Timedout",
                        fmt::format("{}Task timed out after {:.2f} seconds", prefix,
                                    to_seconds(host_.config.time_limit)));
    case EndReason::kMemoryLimit:
      return error_json("Runtime.OutOfMemory",
                        prefix + "Runtime exited with error: signal: killed");
    case EndReason::kInitError:
      return init_error_;
    case EndReason::kOwnEnd:
      break;
  }
  const std::string how = end.signalled || end.code != 0
                              ? "Runtime exited with error: " + end.text()
                              : "Runtime exited without providing a reason";
  return error_json("Runtime.ExitError", prefix + how);
}

void Sandbox::process_ended() {
  const auto& end = process_->poll();
  if (!end) return;
  end_watch_.reset();
  poll_.reset();
  if (cgroup_ && end_reason_ == EndReason::kOwnEnd && cgroup_->oom_kills() > 0) {
    end_reason_ = EndReason::kMemoryLimit;
  }
  const bool had_event = state_ == State::kStarting || state_ == State::kRunning;
  if (had_event && execution_) finish(true, end_report(*end), State::kEnded);
  limit_timer_.reset();
  memory_timer_.reset();
  kill_timer_.reset();
  state_ = State::kEnded;
  callbacks_.ended(*this, std::exchange(execution_, std::nullopt));
}

}  // namespace funcpipe
