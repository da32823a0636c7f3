// Times of the parts of repeated passes, and what one pass typically takes of each.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace funcpipe::nn {

// Wall time, and CPU time of the whole process, in seconds.
struct Elapsed {
  double wall = 0;
  double cpu = 0;
};

class Stopwatch {
 public:
  Stopwatch();
  void restart();
  Elapsed elapsed() const;  // since restart(), without the clocks' own time

 private:
  double clock_cost_ = 0;  // of reading the CPU clock, in CPU seconds
  double cpu_begin_ = 0;
  std::chrono::steady_clock::time_point wall_begin_;
};

// Seconds of one pass, by part.
struct PassTimes {
  explicit PassTimes(std::size_t parts) : wall(parts, 0), cpu(parts, 0) {}
  std::vector<double> wall, cpu;
};

// What one pass takes, by part, while it is not kept from running; and what a pass takes more than
// that in all, as a factor.
struct TypicalPass {
  std::vector<double> seconds;
  double stretch = 1;
};

// How much CPU a process gets: it has `threads`, and its platform grants `cpus` of CPU time per
// second (perhaps more than it can use).
struct CpuGrant {
  int threads = 1;
  double cpus = 1;
  bool is_quota() const { return cpus < threads; }
};

// From passes and all the time they took together, from the first one's begin to the last one's
// end. At least one pass.
//
// A process with a quota stands still in every accounting period of its platform (20 ms or 100 ms).
// Wall times of short parts then tell little: mostly none, at times a whole pause. So parts are
// timed by the CPU clock: of several threads, a part takes its undisturbed wall time, or the time
// in which the quota grants its CPU time, whichever is longer. The stretch is that of all passes
// together, which must span many periods. Without a quota the stretch is 1: whatever else keeps the
// process from running (others on the same machine) is no property of the platform.
TypicalPass typical_pass(const std::vector<PassTimes>& passes, const Elapsed& together,
                         const CpuGrant& grant);

}  // namespace funcpipe::nn
