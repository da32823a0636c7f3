// Seeded random numbers that are the same on every machine, and simple enough to be repeated in
// Python.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace funcpipe {

// SplitMix64 (Steele, Lea, Flood 2014). Satisfies UniformRandomBitGenerator.
class Rng {
 public:
  using result_type = std::uint64_t;
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound > 0, by the multiply-shift of the high 64 bits (Lemire 2019,
  // without rejection: the bias is below bound / 2^64).
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>((*this)()) * bound) >> 64);
  }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

// A seed for one random stream, named by `ids`: h = seed; for each id: h = first output of
// SplitMix64 seeded with (h ^ id). Never use a stream for two purposes.
std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> ids);

// A permutation of 0..count-1 by Fisher-Yates from the end: for i = count-1..1 swap(i, rng.below(i
// + 1)).
std::vector<std::uint32_t> permutation(std::uint32_t count, std::uint64_t seed);

}  // namespace funcpipe
