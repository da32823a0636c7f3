// Simulated time: whole picoseconds since the workers were launched.
//
// Integers, so that sums do not depend on their order, what happens at the same time is exactly at
// the same time, and every machine computes the same bits. A picosecond is far below what any task
// takes, so that a simulation agrees with a closed form to about 1e-12 s a task; 64 bits hold 106
// days.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>

#include "base/error.h"

namespace funcpipe::sim {

using SimTime = std::chrono::duration<std::int64_t, std::pico>;

// With these no sum overflows: a time of a run, and the few tasks' times that are added to it.
constexpr double kLongestTaskSeconds = 1e6;
constexpr SimTime kLongestRun = std::chrono::seconds(5'000'000);

inline double in_seconds(SimTime time) { return static_cast<double>(time.count()) * 1e-12; }

// To the nearest picosecond. Throws Error(kInvalidArgument) for what is not a time of at most
// kLongestTaskSeconds.
inline SimTime sim_time(double seconds) {
  if (!(seconds >= 0 && seconds <= kLongestTaskSeconds)) {
    fail(ErrorCode::kInvalidArgument,
         "a task of {} s cannot be simulated; times lie between 0 and {} s", seconds,
         kLongestTaskSeconds);
  }
  return SimTime(std::llround(seconds * 1e12));
}

}  // namespace funcpipe::sim
