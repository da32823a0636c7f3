#include "sim/engine.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace funcpipe::sim {
namespace {

constexpr auto kUplink = static_cast<std::size_t>(Lane::kUplink);
constexpr auto kDownlink = static_cast<std::size_t>(Lane::kDownlink);
constexpr SimTime kStepRecordInterval = std::chrono::milliseconds(500);

std::size_t count_records(const std::vector<const Program*>& programs) {
  std::size_t records = 0;
  for (const auto* program : programs) records += program->tasks.size();
  if (records >= kNone) {
    fail(ErrorCode::kInvalidArgument,
         "{} tasks are too many to be simulated (limit {}): simulate fewer steps", records, kNone);
  }
  return records;
}

void check_workers(std::size_t workers) {
  if (workers < EventQueue::kMostWorkers) return;
  fail(ErrorCode::kInvalidArgument, "{} workers are too many to be simulated (limit {})", workers,
       EventQueue::kMostWorkers);
}

}  // namespace

std::size_t History::step_of(std::uint32_t record) const {
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), record,
      [](std::uint32_t value, const StepHistory& step) { return value < step.first_record; });
  return static_cast<std::size_t>(after - steps.begin()) - 1;
}

Engine::Engine(const std::vector<const Program*>& programs, const std::vector<WorkerLinks>& links,
               const SimulationOptions& options)
    : options_(options),
      links_(links),
      noise_(options.jitter, options.seed),
      begin_step_(sim_time(options.begin_step_seconds)),
      polling_(options.waiting == Waiting::kPolling),
      gated_(options.store.requests_per_second > 0),
      gate_interval_(gated_ ? sim_time(1 / options.store.requests_per_second) : SimTime(0)),
      workers_(links.size()) {
  check_workers(links.size());
  const auto records = count_records(programs);
  history_.records.resize(records);
  history_.workers.resize(links.size());
  first_waiter_.assign(records, kNone);
  pending_.reserve(records);
  for (const auto* program : programs) {
    auto& step = history_.steps.emplace_back();
    step.program = program;
    step.first_record = static_cast<std::uint32_t>(pending_.size());
    for (const auto& task : program->tasks) pending_.push_back(task.dependencies);
  }
  if (options.store.bytes_per_second > 0) {
    shared_[kUplink].emplace(options.store.bytes_per_second);
    shared_[kDownlink].emplace(options.store.bytes_per_second);
  }
}

History Engine::run() {
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    history_.workers[w].start = links_[w].start;
    push(links_[w].start + begin_step_, EventKind::kRound, w, 0);
  }
  while (!events_.empty()) {
    const auto event = events_.pop();
    now_ = event.time;
    handle(event);
  }
  check_complete();
  history_.events = events_.pushed();
  return std::move(history_);
}

void Engine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kTransferred:
      return transferred(event.lane);
    case EventKind::kEnd:
      return end_task(event.worker, event.lane);
    case EventKind::kRound:
      return begin_round(event.worker);
    case EventKind::kAsk:
      return ask(event.worker, event.lane);
    case EventKind::kAnswer:
      return answer(event.worker, event.lane);
  }
}

// Steps and tasks.

void Engine::begin_round(std::uint32_t worker) {
  auto& state = workers_[worker];
  const auto& plan = step_of(worker).program->workers[worker];
  state.tasks_left = plan.last - plan.first;
  for (std::size_t lane = 0; lane < kLaneCount; ++lane)
    state.lanes[lane].next = plan.first_in_lane[lane];
  for (std::size_t lane = 0; lane < kLaneCount; ++lane) try_start(worker, lane, state.round_cause);
}

void Engine::end_round(std::uint32_t worker, std::uint32_t record) {
  auto& state = workers_[worker];
  auto& step = step_of(worker);
  auto& history = history_.workers[worker];
  if (step.last_record == kNone || now_ > step.end) {
    step.end = now_;
    step.last_record = record;
  }
  if (state.step == 0) history.first_end = now_;
  history.end = now_;
  const auto requests = background_requests(worker);
  if (gated_ && requests > 0 && std::exchange(state.background, state.background + requests) == 0)
    push(now_, EventKind::kAsk, worker, kBackgroundLane);
  state.round_cause = record;
  if (++state.step < history_.steps.size()) push(now_ + begin_step_, EventKind::kRound, worker, 0);
}

// What a worker's background queue does after a step (runtime/round_runner.h, step_log.h). It never
// holds up a lane, so it takes time only where requests are limited.
std::uint64_t Engine::background_requests(std::uint32_t worker) {
  auto& state = workers_[worker];
  auto& step = step_of(worker);
  const auto& plan = step.program->workers[worker];
  std::uint64_t requests = plan.removes + (state.step > 0 ? plan.removes_of_step_before : 0);
  step.usage.removes += requests;
  if (options_.step_records && plan.shape.is_last() && now_ >= state.next_record) {
    state.next_record = now_ + kStepRecordInterval;
    ++step.usage.puts;
    ++requests;
  }
  return requests;
}

void Engine::try_start(std::uint32_t worker, std::size_t lane, std::uint32_t cause) {
  auto& state = workers_[worker].lanes[lane];
  if (state.running != kNone || state.next == kNone) return;
  const auto& step = step_of(worker);
  const auto record = step.first_record + state.next;
  if (pending_[record] > 0) return;
  const auto& task = step.program->tasks[state.next];
  state.running = record;
  state.asked = now_;
  state.requests = 0;
  history_.records[record].begin = now_;
  history_.records[record].cause = cause;
  if (is_send(task.kind)) return request(worker, lane, now_ + task.costs.work);
  if (is_receive(task.kind)) return start_receive(worker, task);
  push(now_ + noise_.compute(task.costs.work, noise_source(worker, lane)), EventKind::kEnd, worker,
       lane);
}

void Engine::start_receive(std::uint32_t worker, const ProgramTask& task) {
  auto& state = workers_[worker];
  const auto source = source_of(worker, task);
  if (source != kNone && visible(source)) return request(worker, kDownlink, now_);
  if (polling_) state.poll.emplace(options_, now_);
  if (polling_ && gated_) {
    ++polls_;
    return request(worker, kDownlink, now_);
  }
  if (source == kNone) return;  // for ever
  state.next_waiter = std::exchange(first_waiter_[source], worker);
}

void Engine::end_task(std::uint32_t worker, std::size_t lane) {
  auto& state = workers_[worker];
  auto& lane_state = state.lanes[lane];
  const auto& task = running(worker, lane);
  const auto record = std::exchange(lane_state.running, kNone);
  history_.records[record].end = now_;
  lane_state.next = task.next_in_lane;
  if (state.step >= history_.first_counted_step()) tally(worker, task, history_.records[record]);
  if (is_send(task.kind)) wake_waiters(record);
  const auto& step = step_of(worker);
  const auto& program = *step.program;
  const auto index = record - step.first_record;
  for (auto i = program.first_dependent[index]; i < program.first_dependent[index + 1]; ++i)
    --pending_[step.first_record + program.dependents[i]];
  if (--state.tasks_left == 0) return end_round(worker, record);
  for (std::size_t other = 0; other < kLaneCount; ++other) try_start(worker, other, record);
}

void Engine::tally(std::uint32_t worker, const ProgramTask& task, const TaskRecord& record) {
  const auto lane = static_cast<std::size_t>(task.lane);
  SimTime waiting{};
  if (is_send(task.kind))
    waiting = workers_[worker].lanes[lane].asked - record.begin - task.costs.work;
  if (is_receive(task.kind)) waiting = workers_[worker].lanes[lane].asked - record.begin;
  const double busy = in_seconds(record.end - record.begin - waiting);
  for (auto* sum : {&history_.workers[worker].lanes[lane],
                    &history_.kinds[static_cast<std::size_t>(task.kind)]}) {
    sum->busy += busy;
    sum->waiting += in_seconds(waiting);
  }
}

// Waiting for messages.

void Engine::wake_waiters(std::uint32_t sender) {
  for (auto worker = std::exchange(first_waiter_[sender], kNone); worker != kNone;) {
    const auto next = std::exchange(workers_[worker].next_waiter, kNone);
    if (polling_) {
      end_polling(worker, sender);
    } else {
      history_.records[workers_[worker].lanes[kDownlink].running].cause = sender;
      request(worker, kDownlink, now_);
    }
    worker = next;
  }
}

// The requests of a waiting receiver disturb nobody when the store has no limit of requests, so
// they are played only now that it is known when the message is there.
void Engine::end_polling(std::uint32_t worker, std::uint32_t sender) {
  auto& state = workers_[worker];
  auto& lane = state.lanes[kDownlink];
  auto& poll = *state.poll;
  auto answered = poll.asked() + latency(worker, kDownlink);
  while (answered < now_) {
    poll.miss(answered, links_[worker].latency);
    answered = poll.asked() + latency(worker, kDownlink);
  }
  if (poll.misses() > 0) history_.records[lane.running].cause = sender;
  auto& usage = step_of(worker).usage;
  usage.gets += poll.misses();
  usage.misses += poll.misses();
  usage.heads += poll.heads();
  lane.asked = poll.asked();
  state.poll.reset();
  transfer(worker, kDownlink, answered);
}

// Requests.

// Sends a request to the store at `at`, now or later.
void Engine::request(std::uint32_t worker, std::size_t lane, SimTime at) {
  if (gated_) return push(at, EventKind::kAsk, worker, lane);
  workers_[worker].lanes[lane].asked = at;
  transfer(worker, lane, at + latency(worker, lane));
}

void Engine::ask(std::uint32_t worker, std::uint8_t lane) {
  const auto turn = std::max(now_, gate_free_);
  gate_free_ = turn + gate_interval_;
  if (lane == kBackgroundLane)
    return push(turn + links_[worker].latency, EventKind::kAnswer, worker, lane);
  auto& state = workers_[worker];
  state.lanes[lane].asked = turn;
  if (lane == kDownlink && state.poll) state.poll->postpone(turn);
  push(turn + latency(worker, lane), EventKind::kAnswer, worker, lane);
}

void Engine::answer(std::uint32_t worker, std::uint8_t lane) {
  if (lane == kBackgroundLane) return end_background(worker);
  if (lane == kDownlink && workers_[worker].poll) return answer_poll(worker);
  transfer(worker, lane, now_);
}

void Engine::answer_poll(std::uint32_t worker) {
  auto& state = workers_[worker];
  auto& poll = *state.poll;
  const auto source = source_of(worker, running(worker, kDownlink));
  if (source != kNone && visible(source)) {
    if (poll.misses() > 0) history_.records[state.lanes[kDownlink].running].cause = source;
    step_of(worker).usage.heads += poll.heads();
    state.poll.reset();
    --polls_;
    return transfer(worker, kDownlink, now_);
  }
  poll.miss(now_, links_[worker].latency);
  ++step_of(worker).usage.gets;
  ++step_of(worker).usage.misses;
  push(poll.asked(), EventKind::kAsk, worker, kDownlink);
  if (events_.size() == polls_ && all_ask_in_vain()) check_complete();
}

// The request's latency is over at `at`, now or later; its bytes move, alone on the function's
// link, which only this lane uses.
void Engine::transfer(std::uint32_t worker, std::size_t lane, SimTime at) {
  if (shared_[lane] && at > now_) return push(at, EventKind::kAnswer, worker, lane);
  const auto& task = running(worker, lane);
  const bool up = lane == kUplink;
  auto& usage = step_of(worker).usage;
  ++(up ? usage.puts : usage.gets);
  (up ? usage.bytes_up : usage.bytes_down) += task.costs.bytes;
  const double rate =
      up ? links_[worker].uplink_bytes_per_second : links_[worker].downlink_bytes_per_second;
  const double bytes =
      noise_.transfer(static_cast<double>(task.costs.bytes), noise_source(worker, lane));
  if (shared_[lane]) {
    shared_[lane]->begin(now_, worker, bytes, rate);
    return schedule_link(lane);
  }
  push(at + sim_time(bytes / rate) + (up ? SimTime(0) : task.costs.work), EventKind::kEnd, worker,
       lane);
}

void Engine::schedule_link(std::size_t lane) {
  if (const auto end = shared_[lane]->next_end()) push(*end, EventKind::kTransferred, 0, lane);
}

// Of several events for one link, all but the one at its next end are out of date.
void Engine::transferred(std::size_t lane) {
  if (shared_[lane]->next_end() != now_) return;
  for (const auto id : shared_[lane]->finished(now_)) {
    const auto worker = static_cast<std::uint32_t>(id);
    const auto work = lane == kUplink ? SimTime(0) : running(worker, lane).costs.work;
    push(now_ + work, EventKind::kEnd, worker, lane);
  }
  schedule_link(lane);
}

void Engine::end_background(std::uint32_t worker) {
  if (--workers_[worker].background > 0) push(now_, EventKind::kAsk, worker, kBackgroundLane);
}

// Small things.

std::uint32_t Engine::source_of(std::uint32_t worker, const ProgramTask& task) const {
  if (task.source == kNone) return kNone;
  return history_.steps[workers_[worker].step].first_record + task.source;
}

const ProgramTask& Engine::running(std::uint32_t worker, std::size_t lane) const {
  const auto& step = history_.steps[workers_[worker].step];
  return step.program->tasks[workers_[worker].lanes[lane].running - step.first_record];
}

Noise::Source Engine::noise_source(std::uint32_t worker, std::size_t lane) const {
  const auto& state = workers_[worker];
  const auto& step = history_.steps[state.step];
  const auto task = state.lanes[lane].running - step.first_record;
  return {worker, static_cast<std::uint32_t>(state.step),
          task - step.program->workers[worker].first, state.lanes[lane].requests};
}

// Of the running task's next request.
SimTime Engine::latency(std::uint32_t worker, std::size_t lane) {
  const auto time = noise_.latency(links_[worker].latency, noise_source(worker, lane));
  ++workers_[worker].lanes[lane].requests;
  return time;
}

void Engine::push(SimTime time, EventKind kind, std::uint32_t worker, std::size_t lane) {
  events_.push({time, kind, worker, static_cast<std::uint8_t>(lane)});
}

// Nothing is left to happen but requests for messages that are not there.
bool Engine::all_ask_in_vain() const {
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    if (!workers_[w].poll) continue;
    const auto source = source_of(w, running(w, kDownlink));
    if (source != kNone && visible(source)) return false;
  }
  return true;
}

void Engine::check_complete() const {
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    const auto step_index = workers_[w].step;
    if (step_index == history_.steps.size()) continue;
    const auto& step = history_.steps[step_index];
    const auto& plan = step.program->workers[w];
    for (auto i = plan.first; i < plan.last; ++i) {
      if (visible(step.first_record + i)) continue;
      fail(ErrorCode::kInternal,
           "simulation: worker {} would wait for ever at task {} ({}) of step {}",
           plan.shape.worker.text(), i - plan.first, describe(step.program->tasks[i].task()),
           step_index);
    }
  }
}

}  // namespace funcpipe::sim
