#include "sim/noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace funcpipe::sim {
namespace {

enum Stream : std::uint64_t { kCompute = 1, kLatency = 2, kTransfer = 3 };

// Of the logarithm, for a coefficient of variation of the lognormal variable.
double sigma_of(double variation) { return std::sqrt(std::log1p(variation * variation)); }

SimTime times(SimTime time, double factor) {
  constexpr double longest = kLongestTaskSeconds * 1e12;
  return SimTime(std::llround(std::min(longest, static_cast<double>(time.count()) * factor)));
}

}  // namespace

Noise::Noise(const Jitter& jitter, std::uint64_t seed)
    : compute_sigma_(sigma_of(jitter.compute)),
      latency_sigma_(sigma_of(jitter.latency)),
      transfer_sigma_(sigma_of(jitter.transfer)),
      seed_(seed) {}

double Noise::factor(double sigma, std::uint64_t stream, const Source& source) const {
  Rng rng(derive_seed(seed_, {stream, source.worker, source.step, source.task, source.request}));
  const double u = 1 - rng.uniform(), v = rng.uniform();  // u in (0, 1]: Box and Muller, 1958
  const double z = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  return std::exp(sigma * (z - sigma / 2));
}

SimTime Noise::compute(SimTime time, const Source& source) const {
  return compute_sigma_ == 0 ? time : times(time, factor(compute_sigma_, kCompute, source));
}

SimTime Noise::latency(SimTime time, const Source& source) const {
  return latency_sigma_ == 0 ? time : times(time, factor(latency_sigma_, kLatency, source));
}

double Noise::transfer(double bytes, const Source& source) const {
  return transfer_sigma_ == 0 ? bytes : bytes * factor(transfer_sigma_, kTransfer, source);
}

}  // namespace funcpipe::sim
