// Random factors of task times.
#pragma once

#include <cstdint>

#include "sim/sim_time.h"
#include "sim/simulation_options.h"

namespace funcpipe::sim {

// The factors are a pure function of the seed and what they are for. Immutable.
class Noise {
 public:
  Noise(const Jitter& jitter, std::uint64_t seed);

  // What the factor is for: the `request`-th request of a task of a worker in a step.
  struct Source {
    std::uint32_t worker = 0;
    std::uint32_t step = 0;
    std::uint32_t task = 0;  // within the worker's list
    std::uint64_t request = 0;
  };
  SimTime compute(SimTime time, const Source& source) const;
  SimTime latency(SimTime time, const Source& source) const;
  double transfer(double bytes, const Source& source) const;

 private:
  // exp(sigma z - sigma^2 / 2), z standard normal.
  double factor(double sigma, std::uint64_t stream, const Source& source) const;

  const double compute_sigma_, latency_sigma_, transfer_sigma_;  // 0: no jitter
  const std::uint64_t seed_;
};

}  // namespace funcpipe::sim
