// What happened in a simulation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/usage.h"
#include "sim/program.h"
#include "sim/sim_time.h"
#include "sim/simulation_result.h"

namespace funcpipe::sim {

// One task of one step.
struct TaskRecord {
  SimTime begin{-1};
  SimTime end{-1};              // before the end is known: -1
  std::uint32_t cause = kNone;  // the record at whose end it could go on: the task before it on the
      // lane, one it comes after, or its message's sender; kNone: the start
};

struct StepHistory {
  const Program* program = nullptr;
  std::uint32_t first_record = 0;  // of its task 0
  SimTime end{};                   // when the last worker ended it
  std::uint32_t last_record = kNone;
  StoreUsage usage;
};

// Sums are over the counted steps.
struct WorkerHistory {
  SimTime start{};      // of its first step
  SimTime first_end{};  // of its first step
  SimTime end{};        // of its last
  std::array<TaskSeconds, kLaneCount> lanes{};
};

struct History {
  std::vector<TaskRecord> records;
  std::vector<StepHistory> steps;
  std::vector<WorkerHistory> workers;
  std::array<TaskSeconds, kTaskKinds> kinds{};
  std::uint64_t events = 0;

  // Figures leave the first step out, unless there is no other.
  std::size_t first_counted_step() const { return steps.size() > 1 ? 1 : 0; }
  double counted_steps() const { return static_cast<double>(steps.size() - first_counted_step()); }
  std::size_t step_of(std::uint32_t record) const;
};

}  // namespace funcpipe::sim
