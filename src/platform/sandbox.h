// One execution environment of the local host: a worker process with its limits, its own Runtime
// API and at most one event at a time.
//
//   kWaiting -> kStarting -> kReady <-> kRunning        any -> kEnding -> kEnded
//
// Lives on the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/platform_spec.h"
#include "platform/cgroup.h"
#include "platform/child_process.h"
#include "platform/function_platform.h"
#include "platform/local_host_config.h"
#include "platform/output_capture.h"
#include "platform/runtime_api_server.h"

namespace funcpipe {

struct ExecutionResult {
  bool failed = false;  // body is then {"errorMessage", "errorType", ...}
  std::string body;
  std::string log_tail;
  Usage usage;
};

// One event on its way through the host. `done` is called at most once.
struct Execution {
  RuntimeEvent event;
  std::optional<Duration> kill_after;  // fault: in real time after delivery
  std::function<void(const ExecutionResult&)> done;
};

class Sandbox : private RuntimeApiHandler {
 public:
  // What every sandbox of a host shares; all of it outlives the sandboxes.
  struct Surroundings {
    EventLoop& loop;
    const LocalHostConfig& config;
    const PlatformSpec& spec;
    const CgroupTree* cgroups;  // none: the fallback
  };
  struct Callbacks {
    std::function<void(Sandbox&, Execution, const ExecutionResult&)> finished;
    // The process is gone. `undelivered` was assigned but never reached it.
    std::function<void(Sandbox&, std::optional<Execution> undelivered)> ended;
  };

  // Starts the process after the cold start's delay.
  Sandbox(const Surroundings& host, const LocalFunction& function, int number, Callbacks callbacks);
  ~Sandbox() override;

  const LocalFunction& function() const { return function_; }
  bool idle() const { return state_ == State::kReady && !execution_; }
  bool busy() const { return execution_.has_value(); }
  TimePoint idle_since() const { return idle_since_; }
  pid_t pid() const { return process_ ? process_->pid() : 0; }

  // Needs !busy(). The event is delivered as soon as the process asks for it.
  void assign(Execution execution);
  // Kills the process; `ended` follows.
  void end();
  // Kills the process without a word: before the sandbox is destroyed.
  void abandon();

 private:
  enum class State { kWaiting, kStarting, kReady, kRunning, kEnding, kEnded };
  enum class EndReason { kOwnEnd, kTimeLimit, kMemoryLimit, kInitError };

  void on_next(HttpServer::Responder poll) override;
  Verdict on_response(std::string_view request_id, std::string body) override;
  Verdict on_error(std::string_view request_id, std::string body) override;
  Verdict on_init_error(std::string body) override;

  void start();
  void start_process();
  void deliver(const HttpServer::Responder& poll);
  Verdict check(std::string_view request_id) const;
  void finish(bool failed, std::string body, State next);
  void process_ended();
  void kill_for(EndReason reason);
  void arm_time_limit();
  void watch_memory();
  std::string end_report(const ProcessEnd& end) const;
  Usage usage_until(TimePoint end) const;
  Duration real(Duration platform_time) const;
  Duration platform(Duration real_time) const;

  Surroundings host_;
  LocalFunction function_;
  std::string name_;  // "<function>-<number>"
  Callbacks callbacks_;
  State state_ = State::kWaiting;
  EndReason end_reason_ = EndReason::kOwnEnd;
  std::string init_error_;
  std::optional<Execution> execution_;
  std::string finished_id_;  // the last request that was answered
  TimePoint started_, delivered_, idle_since_;
  Duration initialisation_{};  // real; of a cold start that is not reported yet
  bool cold_ = true;
  std::optional<HttpServer::Responder> poll_;  // the process waits for an event

  RuntimeApiServer runtime_api_;
  std::unique_ptr<Cgroup> cgroup_;
  std::optional<OutputCapture> output_;
  std::optional<ChildProcess> process_;  // goes before cgroup_
  EventLoop::Handle start_timer_, limit_timer_, kill_timer_, memory_timer_, end_watch_;
};

}  // namespace funcpipe
