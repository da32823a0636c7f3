#include "base/rng.h"

#include <numeric>
#include <utility>

namespace funcpipe {

std::uint64_t derive_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> ids) {
  for (const auto id : ids) seed = Rng(seed ^ id)();
  return seed;
}

std::vector<std::uint32_t> permutation(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  Rng rng(seed);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

}  // namespace funcpipe
