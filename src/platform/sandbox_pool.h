// Which sandbox runs which event: warm reuse, concurrency limit, queue of asynchronous events,
// injected faults, and the accounts of what was used.
//
// Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "platform/sandbox.h"

namespace funcpipe {

struct FunctionAccount {
  std::uint64_t invocations = 0;  // finished
  std::uint64_t failures = 0;
  std::uint64_t throttles = 0;
  std::uint64_t cold_starts = 0;
  double gb_seconds = 0;
};

class SandboxPool {
 public:
  SandboxPool(EventLoop& loop, const LocalHostConfig& config, const PlatformSpec& spec,
              const CgroupTree* cgroups)
      : host_{loop, config, spec, cgroups}, fault_rng_(config.faults.seed) {}
  ~SandboxPool();
  SandboxPool(const SandboxPool&) = delete;
  SandboxPool& operator=(const SandboxPool&) = delete;

  const LocalFunction* find(std::string_view name) const;
  const std::vector<LocalFunction>& functions() const { return host_.config.functions; }

  // Runs the event in a warm sandbox (the last one used first) or in a new one; false: throttled.
  bool run(const LocalFunction& function, Execution execution);
  // Runs it as soon as there is room.
  void enqueue(const LocalFunction& function, Execution execution);

  const std::map<std::string, FunctionAccount>& accounts() const { return accounts_; }
  const std::vector<std::unique_ptr<Sandbox>>& sandboxes() const { return sandboxes_; }

 private:
  struct Queued {
    const LocalFunction* function;
    Execution execution;
  };
  bool draw(double probability) { return probability > 0 && fault_rng_.uniform() < probability; }
  void plan_kill(Execution& execution);
  bool has_room() const;
  void start_on_sandbox(const LocalFunction& function, Execution execution);
  Sandbox* warmest(const LocalFunction& function) const;
  Sandbox& start_sandbox(const LocalFunction& function);
  void end_coldest_if_full();
  void finished(Sandbox& sandbox, const Execution& execution, const ExecutionResult& result);
  void ended(Sandbox& sandbox, std::optional<Execution> undelivered);
  void run_queue();
  void arm_expiry();

  Sandbox::Surroundings host_;
  Rng fault_rng_;
  int started_ = 0;
  std::deque<Queued> queue_;
  std::map<std::string, FunctionAccount> accounts_;
  std::vector<std::unique_ptr<Sandbox>> sandboxes_;
  std::vector<std::unique_ptr<Sandbox>> graveyard_;  // ended; still on the call stack perhaps
  EventLoop::Handle burial_, expiry_;
};

}  // namespace funcpipe
