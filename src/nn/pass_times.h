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

// Seconds of each part in a typical pass; they add up to the mean time of a pass. Where the process
// is stopped again and again (a CPU quota), a part's own wall times tell little: mostly none, at
// times a whole pause. The parts then get the pauses in proportion to their CPU time; with several
// threads a part takes at least its undisturbed wall time. At least one pass.
std::vector<double> typical_seconds(const std::vector<PassTimes>& passes, int threads);

}  // namespace funcpipe::nn
