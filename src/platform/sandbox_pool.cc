#include "platform/sandbox_pool.h"

#include <algorithm>
#include <utility>

namespace funcpipe {

SandboxPool::~SandboxPool() {
  for (const auto& sandbox : sandboxes_) sandbox->abandon();  // all at once, then wait for each
}

const LocalFunction* SandboxPool::find(std::string_view name) const {
  const auto& all = host_.config.functions;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const LocalFunction& function) { return function.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool SandboxPool::has_room() const {
  const auto busy = std::count_if(sandboxes_.begin(), sandboxes_.end(),
                                  [](const auto& sandbox) { return sandbox->busy(); });
  return busy < host_.config.max_concurrency;
}

void SandboxPool::plan_kill(Execution& execution) {
  const FaultSpec& faults = host_.config.faults;
  if (!draw(faults.kill_probability)) return;
  const double spread = to_seconds(faults.kill_after_max - faults.kill_after_min);
  const double seconds = to_seconds(faults.kill_after_min) + spread * fault_rng_.uniform();
  execution.kill_after = from_seconds(seconds * host_.config.time_dilation);
}

bool SandboxPool::run(const LocalFunction& function, Execution execution) {
  if (draw(host_.config.faults.throttle_probability) || !has_room()) {
    ++accounts_[function.name].throttles;
    return false;
  }
  const bool duplicate = draw(host_.config.faults.duplicate_probability);
  plan_kill(execution);
  const RuntimeEvent event = duplicate ? execution.event : RuntimeEvent();
  start_on_sandbox(function, std::move(execution));
  if (duplicate) queue_.push_back({&function, {event, std::nullopt, nullptr}});
  run_queue();
  return true;
}

void SandboxPool::enqueue(const LocalFunction& function, Execution execution) {
  const bool duplicate = draw(host_.config.faults.duplicate_probability);
  plan_kill(execution);
  if (duplicate) queue_.push_back({&function, {execution.event, std::nullopt, nullptr}});
  queue_.push_back({&function, std::move(execution)});
  run_queue();
}

void SandboxPool::run_queue() {
  while (!queue_.empty() && has_room()) {
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    start_on_sandbox(*next.function, std::move(next.execution));
  }
}

void SandboxPool::start_on_sandbox(const LocalFunction& function, Execution execution) {
  Sandbox* sandbox = warmest(function);
  if (sandbox == nullptr) sandbox = &start_sandbox(function);
  sandbox->assign(std::move(execution));
}

Sandbox* SandboxPool::warmest(const LocalFunction& function) const {
  Sandbox* best = nullptr;
  for (const auto& sandbox : sandboxes_) {
    if (!sandbox->idle() || sandbox->function().name != function.name) continue;
    if (best == nullptr || sandbox->idle_since() > best->idle_since()) best = sandbox.get();
  }
  return best;
}

Sandbox& SandboxPool::start_sandbox(const LocalFunction& function) {
  end_coldest_if_full();
  Sandbox::Callbacks callbacks;
  callbacks.finished = [this](Sandbox& sandbox, const Execution& execution,
                              const ExecutionResult& result) {
    finished(sandbox, execution, result);
  };
  callbacks.ended = [this](Sandbox& sandbox, std::optional<Execution> undelivered) {
    ended(sandbox, std::move(undelivered));
  };
  ++accounts_[function.name].cold_starts;
  sandboxes_.push_back(
      std::make_unique<Sandbox>(host_, function, ++started_, std::move(callbacks)));
  return *sandboxes_.back();
}

// Warm sandboxes of other functions make room, so that there are never more processes than
// max_concurrency for long.
void SandboxPool::end_coldest_if_full() {
  if (sandboxes_.size() < static_cast<std::size_t>(host_.config.max_concurrency)) return;
  Sandbox* coldest = nullptr;
  for (const auto& sandbox : sandboxes_) {
    if (!sandbox->idle()) continue;
    if (coldest == nullptr || sandbox->idle_since() < coldest->idle_since())
      coldest = sandbox.get();
  }
  if (coldest != nullptr) coldest->end();
}

void SandboxPool::finished(Sandbox& sandbox, const Execution& execution,
                           const ExecutionResult& result) {
  FunctionAccount& account = accounts_[sandbox.function().name];
  ++account.invocations;
  if (result.failed) ++account.failures;
  account.gb_seconds += gb_seconds(result.usage.memory_mb, result.usage.billed);
  if (execution.done) execution.done(result);
  run_queue();
  if (!expiry_) arm_expiry();
}

void SandboxPool::ended(Sandbox& sandbox, std::optional<Execution> undelivered) {
  const LocalFunction* function = find(sandbox.function().name);
  const auto found = std::find_if(sandboxes_.begin(), sandboxes_.end(),
                                  [&](const auto& one) { return one.get() == &sandbox; });
  graveyard_.push_back(std::move(*found));
  sandboxes_.erase(found);
  burial_ = host_.loop.after(Duration::zero(), [this] { graveyard_.clear(); });
  if (undelivered) queue_.push_front({function, std::move(*undelivered)});
  run_queue();
}

// One timer for all, for the sandbox that has been idle longest; none while all are busy.
void SandboxPool::arm_expiry() {
  expiry_.reset();
  std::optional<TimePoint> first;
  for (const auto& sandbox : sandboxes_) {
    if (sandbox->idle() && (!first || sandbox->idle_since() < *first))
      first = sandbox->idle_since();
  }
  if (!first) return;
  const Duration timeout =
      from_seconds(to_seconds(host_.config.idle_timeout) * host_.config.time_dilation);
  const Duration delay = *first + timeout - std::chrono::steady_clock::now();
  expiry_ = host_.loop.after(std::max(delay, Duration::zero()), [this, timeout] {
    const TimePoint limit = std::chrono::steady_clock::now() - timeout;
    std::vector<Sandbox*> expired;
    for (const auto& sandbox : sandboxes_) {
      if (sandbox->idle() && sandbox->idle_since() <= limit) expired.push_back(sandbox.get());
    }
    for (Sandbox* sandbox : expired) sandbox->end();
    arm_expiry();
  });
}

}  // namespace funcpipe
