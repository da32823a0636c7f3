// When a waiting receiver asks for its message: the behaviour of the runtime's mailbox.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/backoff.h"
#include "sim/sim_time.h"
#include "sim/simulation_options.h"

namespace funcpipe::sim {

// One wait. The receiver asks, and after every miss asks again after a growing delay, until the
// stop check is due; then it asks once more, looks whether the run was stopped, and begins anew
// with small delays.
class PollSequence {
 public:
  PollSequence(const SimulationOptions& options, SimTime begin)
      : options_(&options),
        backoff_(options.backoff),
        asked_(begin),
        check_(begin + stop_check()) {}

  // When the current request went out.
  SimTime asked() const { return asked_; }
  std::uint64_t misses() const { return misses_; }
  std::uint64_t heads() const { return heads_; }

  // The current request found nothing; the answer came at `answered`. A look for a stop, if one is
  // due, takes `latency`. Moves on to the next request.
  void miss(SimTime answered, SimTime latency) {
    ++misses_;
    if (asked_ >= check_) {
      ++heads_;
      asked_ = answered + latency;
      check_ = asked_ + stop_check();
      backoff_ = Backoff(options_->backoff);
    } else {
      asked_ = std::min(answered + SimTime(backoff_.next()), check_);
    }
  }
  // The current request had to wait for its turn.
  void postpone(SimTime asked) { asked_ = asked; }

 private:
  SimTime stop_check() const { return options_->stop_check; }

  const SimulationOptions* options_;
  Backoff backoff_;
  SimTime asked_, check_;
  std::uint64_t misses_ = 0;
  std::uint64_t heads_ = 0;
};

}  // namespace funcpipe::sim
