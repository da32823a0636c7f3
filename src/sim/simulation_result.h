// What a simulation says.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/platform_spec.h"
#include "core/trace.h"
#include "sim/simulation_options.h"

namespace funcpipe {

// Seconds of a lane or a kind of task. Waiting is the time between the start of a task and its
// successful request: for the message, or for its turn at a store with a limit of requests.
struct TaskSeconds {
  double busy = 0;
  double waiting = 0;
};

// One worker. Per step: mean over the steps after the first (over the only one, if there is one).
struct SimulatedWorker {
  WorkerId worker;
  int memory_mb = 0;
  double start_seconds = 0;  // when it began its first step: 0, or its cold start
  double end_seconds = 0;    // when it ended its last; it is billed until then
  double step_seconds = 0;   // per step
  std::array<TaskSeconds, kLaneCount> lanes{};  // per step

  double utilisation(Lane lane) const {
    return step_seconds > 0 ? lanes[static_cast<std::size_t>(lane)].busy / step_seconds : 0;
  }
};

// Storage requests of all workers, per step (mean, as above), and the bytes of their messages. Not
// counted: data, which is taken to stay in the functions' caches, and the bytes of step records.
struct StepRequests {
  double puts = 0;
  double gets = 0;    // found or not
  double misses = 0;  // of the gets, those that found nothing
  double heads = 0;   // looks for a stop in long waits
  double removes = 0;
  double bytes_up = 0;
  double bytes_down = 0;
};

// A task on the critical path, from the end of its predecessor on the path to its own end; for a
// message that was polled for, from the moment it was there.
struct PathSegment {
  WorkerId worker;
  std::int64_t step = 0;
  Task task;  // without dependencies
  double begin_seconds = 0;
  double seconds = 0;
};

// Why a step took as long as it did: the chain of tasks, each started by the end of the one before,
// that fills the time between the end of the step before and the end of the step. Its first tasks
// may belong to the step before. Earliest first.
struct CriticalPath {
  std::int64_t step = 0;
  double start_seconds = 0;  // of a first step: launch to the first task
  std::vector<PathSegment> segments;
  std::array<double, kTaskKinds> seconds_by_kind{};

  double seconds(TaskKind kind) const { return seconds_by_kind[static_cast<std::size_t>(kind)]; }
};

// What one step costs.
struct StepCost {
  double compute_usd = 0;  // every function of the plan, running
  double storage_usd = 0;  // requests
  double total_usd() const { return compute_usd + storage_usd; }
};

struct SimulationResult {
  // The steady time of a step: the median of the times between the ends of steps, the first step
  // left out (the duration of the only step, if there is one).
  double iteration_seconds = 0;
  std::vector<double> step_ends;  // seconds since launch: when the last worker ended the step
  std::vector<SimulatedWorker> workers;         // stage by stage, replica by replica
  double bubble = 0;                            // mean idle fraction of the compute lanes
  std::array<TaskSeconds, kTaskKinds> kinds{};  // all workers, per step
  StepRequests requests;
  CriticalPath critical_path;  // of the step whose duration is iteration_seconds, or next to it
  std::vector<WorkerTrace> traces;  // times since launch; empty unless asked for
  std::uint64_t events = 0;         // simulated, for the curious

  double utilisation(Lane lane) const;  // mean over the workers
  const TaskSeconds& kind(TaskKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
};

StepCost step_cost(const SimulationResult& result, const PlatformSpec& platform);
// Once a run: invocations, and functions that run but do not train yet.
double start_usd(const SimulationResult& result, const PlatformSpec& platform);

}  // namespace funcpipe
