#include "core/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace funcpipe {

double learning_rate(const LearningRateSpec& spec, double base, std::int64_t step,
                     std::int64_t steps) {
  if (step < spec.warmup_steps) {
    return base * static_cast<double>(step + 1) / static_cast<double>(spec.warmup_steps);
  }
  const auto position = step - spec.warmup_steps;
  switch (spec.kind) {
    case LearningRateSpec::Kind::kConstant:
      return base;
    case LearningRateSpec::Kind::kStep:
      return base * std::pow(spec.factor, static_cast<double>(position / spec.every_steps));
    case LearningRateSpec::Kind::kCosine: {
      const double span = static_cast<double>(std::max<std::int64_t>(1, steps - spec.warmup_steps));
      const double angle = std::numbers::pi * static_cast<double>(position) / span;
      return spec.minimum + (base - spec.minimum) * (1 + std::cos(angle)) / 2;
    }
  }
  return base;
}

}  // namespace funcpipe
