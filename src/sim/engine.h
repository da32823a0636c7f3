// The simulation proper: workers, lanes, and the store between them, event by event.
//
// Every rule is one of the runtime's: a lane performs its tasks in list order, each once all tasks
// it comes after are complete (schedule/lane_executor.h); a worker begins a step when all lanes
// have ended the one before (runtime/round_runner.h); a put takes its latency and then its bytes
// through the uplink, and is visible at its end; a get takes its latency, sees what is visible
// then, and takes its bytes through the downlink (store/throttled_store.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/event_queue.h"
#include "sim/history.h"
#include "sim/noise.h"
#include "sim/poll_sequence.h"
#include "sim/program.h"
#include "sim/shared_link.h"

namespace funcpipe::sim {

// What a worker has for its requests.
struct WorkerLinks {
  SimTime latency{};
  double uplink_bytes_per_second = 0;
  double downlink_bytes_per_second = 0;
  SimTime start{};  // of its first step
};

class Engine {
 public:
  // `programs`: one for each step, of the same workers; they and `options` outlive the engine and
  // the history.
  Engine(const std::vector<const Program*>& programs, const std::vector<WorkerLinks>& links,
         const SimulationOptions& options);

  // Once. Throws Error(kInternal) naming worker and task when the workers would wait for each other
  // for ever.
  History run();

 private:
  static constexpr std::uint8_t kBackgroundLane = kLaneCount;

  struct LaneState {
    std::uint32_t next = kNone;     // task of the program
    std::uint32_t running = kNone;  // record
    SimTime asked{};                // when its successful request went out
    std::uint64_t requests = 0;     // of the running task so far
  };
  struct WorkerState {
    std::size_t step = 0;
    std::uint32_t tasks_left = 0;
    std::uint32_t round_cause = kNone;  // record
    std::array<LaneState, kLaneCount> lanes;
    std::optional<PollSequence> poll;   // of the receive on the downlink, while it waits
    std::uint32_t next_waiter = kNone;  // worker that waits for the same message
    std::uint64_t background = 0;       // requests its background queue has still to make
    SimTime next_record{};              // when the next step record may be put
  };

  void handle(const Event& event);
  void begin_round(std::uint32_t worker);
  void end_round(std::uint32_t worker, std::uint32_t record);
  void try_start(std::uint32_t worker, std::size_t lane, std::uint32_t cause);
  void start_receive(std::uint32_t worker, const ProgramTask& task);
  void end_task(std::uint32_t worker, std::size_t lane);
  void tally(std::uint32_t worker, const ProgramTask& task, const TaskRecord& record);
  void wake_waiters(std::uint32_t sender);
  void end_polling(std::uint32_t worker, std::uint32_t sender);

  void request(std::uint32_t worker, std::size_t lane, SimTime at);
  void ask(std::uint32_t worker, std::uint8_t lane);
  void answer(std::uint32_t worker, std::uint8_t lane);
  void answer_poll(std::uint32_t worker);
  void transfer(std::uint32_t worker, std::size_t lane, SimTime at);
  void transferred(std::size_t lane);
  void schedule_link(std::size_t lane);
  std::uint64_t background_requests(std::uint32_t worker);
  void end_background(std::uint32_t worker);

  bool visible(std::uint32_t sender) const { return history_.records[sender].end >= SimTime(0); }
  std::uint32_t source_of(std::uint32_t worker, const ProgramTask& task) const;
  const ProgramTask& running(std::uint32_t worker, std::size_t lane) const;
  StepHistory& step_of(std::uint32_t worker) { return history_.steps[workers_[worker].step]; }
  Noise::Source noise_source(std::uint32_t worker, std::size_t lane) const;
  SimTime latency(std::uint32_t worker, std::size_t lane);
  void push(SimTime time, EventKind kind, std::uint32_t worker, std::size_t lane);
  bool all_ask_in_vain() const;
  void check_complete() const;

  const SimulationOptions& options_;
  const std::vector<WorkerLinks>& links_;
  const Noise noise_;
  const SimTime begin_step_;
  const bool polling_;
  const bool gated_;  // the store limits requests
  const SimTime gate_interval_;
  SimTime gate_free_{};                                       // when the next request may pass
  std::array<std::optional<SharedLink>, kLaneCount> shared_;  // uplink and downlink of the store

  SimTime now_{};
  EventQueue events_;
  std::size_t polls_ = 0;  // waits whose requests are events, one of each at any time
  std::vector<WorkerState> workers_;
  std::vector<std::uint32_t> pending_;       // by record: tasks it still has to wait for
  std::vector<std::uint32_t> first_waiter_;  // by record of a send: worker waiting for its message
  History history_;
};

}  // namespace funcpipe::sim
