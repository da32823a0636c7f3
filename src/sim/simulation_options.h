// What a simulation assumes beside profile and plan.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/backoff.h"
#include "schedule/task.h"

namespace funcpipe {

constexpr std::size_t kTaskKinds = static_cast<std::size_t>(TaskKind::kUpdate) + 1;

// What a job adds to a profile.
struct TrainingShape {
  std::int64_t batch_size = 0;        // samples of a mini-batch
  std::int64_t micro_batch_size = 0;  // must be the profile's; 0: take that
  // Of the dataset: the last mini-batch of an epoch may be short. 0: every one is full.
  std::int64_t samples = 0;
  bool clip = false;  // the global gradient norm is needed before the update
};

// How a receiver learns that its message is there.
enum class Waiting {
  kPolling,  // as the runtime: it asks again after a growing delay; every miss costs a latency
  kIdeal,    // at the very moment, and asks then: what closed forms assume
};

// Coefficients of variation (standard deviation / mean) of every single task's compute time,
// request latency and transfer time. Each is multiplied by a lognormal factor of mean 1, drawn from
// (seed, worker, step, task): independent of the order of events, and the same whatever else is
// changed.
struct Jitter {
  double compute = 0;
  double latency = 0;
  double transfer = 0;
};

// What all functions together get from the store. 0: no limit.
struct StoreLimits {
  double bytes_per_second = 0;     // in each direction; shared fairly (max-min) among the transfers
  double requests_per_second = 0;  // served in the order of arrival
};

// What a task takes beyond what profile and links say, for calibration.
struct TaskOverhead {
  double seconds = 0;
  // Of the message sent (serialisation and checksum, before the request) or received (after it).
  // Compute tasks: forward, backward: of what crosses the stage's cuts; reduce split: of the parts
  // added; pack values, measure norm, update: of the synchronised values.
  double seconds_per_byte = 0;
};

struct SimulationOptions {
  int steps = 4;  // at least 1; figures are those of the steps after the first
  Waiting waiting = Waiting::kPolling;
  // Of kPolling: those of the runtime's mailbox, with its look for a stop every 5 s.
  BackoffOptions backoff{std::chrono::microseconds(200), std::chrono::milliseconds(20), 1.5, 0};
  Duration stop_check = std::chrono::seconds(5);
  // Start after the profile's cold start and the download of the stage, instead of at once.
  bool cold_starts = false;
  // Splits, merged splits and norms are framed and padded as on the wire. (Activations are in any
  // case: the profile's output bytes count that.)
  bool wire_headers = true;
  bool step_records = true;  // last-stage workers put one at most twice a second, as the runtime's
  std::optional<double> latency_seconds;  // of a request, instead of the profile's
  Jitter jitter;
  std::uint64_t seed = 0;
  StoreLimits store;
  std::array<TaskOverhead, kTaskKinds> overheads{};  // by kind
  double begin_step_seconds = 0;                     // of every worker, before its step's tasks
  bool traces = false;  // fill SimulationResult::traces; about 100 bytes a task

  TaskOverhead& overhead(TaskKind kind) { return overheads[static_cast<std::size_t>(kind)]; }
  const TaskOverhead& overhead(TaskKind kind) const {
    return overheads[static_cast<std::size_t>(kind)];
  }

  // The assumptions of closed forms: ideal waiting, messages of exactly their values, and nothing
  // else.
  static SimulationOptions closed_form() {
    SimulationOptions options;
    options.waiting = Waiting::kIdeal;
    options.wire_headers = false;
    options.step_records = false;
    return options;
  }
};

}  // namespace funcpipe
