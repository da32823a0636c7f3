// One training step of all workers in the form the engine runs: flat arrays, messages resolved.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/message_slots.h"
#include "sim/task_costs.h"

namespace funcpipe::sim {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Indices of tasks count over all workers of the program, worker by worker.
struct ProgramTask {
  TaskKind kind{};
  Lane lane{};
  std::int32_t micro_batch = -1;
  std::int32_t peer = -1;
  std::uint32_t worker = 0;
  std::uint32_t next_in_lane = kNone;
  std::uint32_t source = kNone;    // of a receive: the task that sends its message
  std::uint32_t dependencies = 0;  // tasks of the same worker that it comes after
  TaskCosts costs;

  Task task() const { return {kind, micro_batch, peer, {}}; }
};

struct ProgramWorker {
  WorkerShape shape;
  std::uint32_t first = 0;  // its tasks: [first, last)
  std::uint32_t last = 0;
  std::array<std::uint32_t, kLaneCount> first_in_lane{kNone, kNone, kNone};
  // Messages that its background queue removes after the step: of the step, and of the one before.
  std::uint32_t removes = 0;
  std::uint32_t removes_of_step_before = 0;
};

struct Program {
  std::vector<ProgramWorker> workers;
  std::vector<ProgramTask> tasks;
  // The tasks that come after task i: dependents[first_dependent[i] .. first_dependent[i + 1]).
  std::vector<std::uint32_t> first_dependent;
  std::vector<std::uint32_t> dependents;
};

// From any task lists, worker by worker. A receive that nobody sends to waits for ever.
class ProgramBuilder {
 public:
  // `context` outlives the builder.
  ProgramBuilder(const StepContext& context, int stages, int replicas);
  void add(const WorkerShape& shape, const TaskList& tasks);
  Program take();

 private:
  void link_lanes(ProgramWorker& worker);
  void link_messages();
  void link_dependents();

  struct Edge {
    std::uint32_t from, to;
  };

  const StepContext& context_;
  const MessageSlots slots_;
  Program program_;
  std::vector<std::uint32_t> senders_;  // by message slot
  std::vector<Edge> edges_;
};

// The runtime's own task lists (schedule/step_schedule.h) of a step of this many samples, split as
// the runtime splits a mini-batch (core/batching.h).
Program make_program(const StepContext& context, const Plan& plan, bool clip);

}  // namespace funcpipe::sim
