#include "profile/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace funcpipe {
namespace {

double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

Quartiles quartiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.75) - quantile(values, 0.25)};
}

}  // namespace funcpipe
