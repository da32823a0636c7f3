// Learning rate of every step.
#pragma once

#include <cstdint>

namespace funcpipe {

struct LearningRateSpec {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;
  std::int64_t warmup_steps = 0;  // linear from base / warmup_steps up to base
  std::int64_t every_steps = 0;   // kStep: multiply by factor every so many steps
  double factor = 0.1;            // kStep
  double minimum = 0;             // kCosine: rate that the step after the last would have
  bool operator==(const LearningRateSpec&) const = default;
};

// Rate of step `step` (0-based) of `steps`, with `base` the optimiser's rate. After the warm-up w
// the other rules count from step w: kStep equals PyTorch's StepLR(every_steps, factor), kCosine
// equals CosineAnnealingLR(steps - w, minimum), each stepped once per optimiser step.
double learning_rate(const LearningRateSpec& spec, double base, std::int64_t step,
                     std::int64_t steps);

}  // namespace funcpipe
