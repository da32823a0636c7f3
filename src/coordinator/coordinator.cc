#include "coordinator/coordinator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/backoff.h"
#include "base/error.h"
#include "coordinator/failure.h"
#include "coordinator/progress_follower.h"
#include "core/run_layout.h"
#include "core/worker_task.h"
#include "data/parallel.h"

namespace funcpipe {
namespace {

using Kind = InvocationOutcome::Kind;

constexpr int kParallelTransfers = 8;
constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr auto kThrottleBudget = std::chrono::minutes(2);
constexpr auto kSettleTime =
    std::chrono::seconds(2);  // after the first failure, for others that tell more

}  // namespace

struct Coordinator::Member {
  WorkerTask task;
  WorkerAccount account;
  std::unique_ptr<Invocation> invocation;  // null: to be launched at `not_before`
  TimePoint not_before{};
  std::optional<TimePoint> throttled_since;
  Backoff throttle_backoff{{std::chrono::milliseconds(200), std::chrono::seconds(5), 2, 0.5}};
  std::optional<InvocationOutcome> failure;
  bool done = false;
};

std::string function_name(int memory_mb) { return fmt::format("funcpipe-{}", memory_mb); }

Coordinator::Coordinator(ObjectStore& store, FunctionPlatform& platform, Clock& clock)
    : store_(store), platform_(platform), clock_(clock) {}

Coordinator::~Coordinator() = default;

RunResult Coordinator::run(const RunRequest& request, const RunEvents& events,
                           std::stop_token stop) {
  members_.clear();
  upload_model(request);
  for (const auto& worker : request.plan.workers()) {
    auto member = std::make_unique<Member>();
    member->task = {request.run, request.store_url, request.job, request.plan, worker, 0, 0};
    member->account.worker = worker;
    member->account.memory_mb =
        request.plan.stages.at(static_cast<std::size_t>(worker.stage)).memory_mb;
    members_.push_back(std::move(member));
  }
  try {
    follow(request, events, std::move(stop));
  } catch (...) {
    stop_workers(request);
    throw;
  }
  return gather(request);
}

void Coordinator::upload_model(const RunRequest& request) {
  const RunLayout layout(request.run);
  put(store_, layout.model_file("manifest.json"), as_bytes(request.manifest.to_json().dump()));
  for_each_in_parallel(request.layer_files.size(), kParallelTransfers, [&](std::size_t i) {
    put(store_, layout.model_file(request.manifest.layers[i].file), request.layer_files[i].view());
  });
}

void Coordinator::launch(Member& member, const RunRequest& request) {
  const auto memory_mb =
      request.plan.stages.at(static_cast<std::size_t>(member.task.worker.stage)).memory_mb;
  member.invocation = platform_.invoke(function_name(memory_mb), member.task.to_json().dump());
  ++member.task.attempt;
}

void Coordinator::follow(const RunRequest& request, const RunEvents& events, std::stop_token stop) {
  const auto& training = request.job.training;
  const StepSequence steps(request.train_records, training.batch_size, training.epochs,
                           training.steps);
  ProgressFollower progress(
      store_, RunLayout(request.run), steps,
      {request.plan.replicas, !request.job.data.test.empty(), request.time_dilation,
       training.evaluate_every_epochs * steps.steps_per_epoch()});
  progress.on_step = events.step;
  progress.on_evaluation = events.evaluation;
  while (true) {
    if (stop.stop_requested()) fail(ErrorCode::kCancelled, "stopped on request");
    bool all_done = true, failed = false;
    for (auto& member : members_) {
      if (!member->invocation && !member->done && clock_.now() >= member->not_before)
        launch(*member, request);
      failed = !settle(*member, request, events) || failed;
      all_done = all_done && member->done;
    }
    const bool news = progress.poll();
    if (failed) give_up(request);
    if (all_done && progress.complete()) return;
    if (all_done && !news)
      fail(ErrorCode::kDataLoss,
           "all workers ended, but records of some steps are missing in the store");
    clock_.sleep_for(kPollInterval, stop);
  }
}

// Takes the outcome of a worker's invocation if there is one. False: the worker has failed for
// good.
bool Coordinator::settle(Member& member, const RunRequest& request, const RunEvents& events) {
  if (!member.invocation) return true;
  const auto outcome = member.invocation->wait(Deadline::at(clock_.now()));
  if (!outcome) return true;
  member.invocation.reset();
  book(member, *outcome);
  if (outcome->kind == Kind::kThrottled) {
    if (!member.throttled_since) member.throttled_since = clock_.now();
    if (clock_.now() - *member.throttled_since < kThrottleBudget) {
      member.not_before = clock_.now() + member.throttle_backoff.next();
      return true;
    }
  }
  if (outcome->kind != Kind::kSucceeded) {
    member.failure = *outcome;
    return false;
  }
  member.throttled_since.reset();
  const auto report = WorkerReport::from_text(outcome->payload);
  member.account.usage += report.usage;
  member.account.compute_seconds += report.compute_seconds / request.time_dilation;
  member.done = report.status == WorkerReport::Status::kDone;
  if (!member.done) {
    member.task.step = report.next_step;
    if (events.note) {
      events.note(fmt::format("worker {} goes on in a new function from step {}",
                              member.task.worker.text(), report.next_step));
    }
  }
  return true;
}

void Coordinator::book(Member& member, const InvocationOutcome& outcome) {
  if (outcome.kind == Kind::kThrottled || outcome.kind == Kind::kRejected) return;
  auto& account = member.account;
  ++account.invocations;
  account.cold_starts += outcome.usage.cold_start ? 1 : 0;
  account.billed += outcome.usage.billed;
  account.max_memory_used_mb =
      std::max(account.max_memory_used_mb, outcome.usage.max_memory_used_mb);
}

// One failure seldom comes alone; a short look at the others tells cause from consequence.
void Coordinator::give_up(const RunRequest& request) {
  stop_workers(request);
  const auto until = Deadline::after(clock_, kSettleTime);
  for (auto& member : members_) {
    if (!member->invocation) continue;
    if (const auto outcome = member->invocation->wait(until)) {
      book(*member, *outcome);
      if (outcome->kind != Kind::kSucceeded) member->failure = *outcome;
    }
  }
  const Member* cause = nullptr;
  for (const auto& member : members_) {
    if (!member->failure) continue;
    if (cause == nullptr || failure_rank(*member->failure) < failure_rank(*cause->failure))
      cause = member.get();
  }
  throw failure_of(cause->task.worker, *cause->failure);
}

void Coordinator::stop_workers(const RunRequest& request) {
  try {
    put(store_, RunLayout(request.run).stop(), as_bytes("stopped\n"));
  } catch (const Error&) {
    // The store itself may be what failed; the workers then end at their own deadlines.
  }
}

RunResult Coordinator::gather(const RunRequest& request) {
  const RunLayout layout(request.run);
  RunResult result;
  result.stage_weights.resize(request.plan.stages.size());
  for_each_in_parallel(result.stage_weights.size(), kParallelTransfers, [&](std::size_t stage) {
    auto object = store_.get(layout.result(static_cast<int>(stage)));
    if (!object) fail(ErrorCode::kDataLoss, "the weights of stage {} are not in the store", stage);
    result.stage_weights[stage] = std::move(*object);
  });
  for (const auto& member : members_) {
    for (int attempt = 0; attempt < member->task.attempt; ++attempt) {
      const auto object = store_.get(layout.trace(member->task.worker, attempt));
      if (object) result.traces.push_back(worker_trace_from_text(object->text()));
    }
  }
  const auto leftovers = list_all(store_, request.run + "/");
  for_each_in_parallel(leftovers.size(), kParallelTransfers,
                       [&](std::size_t i) { store_.remove(leftovers[i].key); });
  return result;
}

std::vector<WorkerAccount> Coordinator::accounts() const {
  std::vector<WorkerAccount> accounts;
  for (const auto& member : members_) accounts.push_back(member->account);
  return accounts;
}

}  // namespace funcpipe
