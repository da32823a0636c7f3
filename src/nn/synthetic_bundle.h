// Values of the right type and shape where there are no real ones.
#pragma once

#include <cstdint>
#include <vector>

#include "core/manifest.h"

namespace funcpipe {

// `samples` samples of what a layer gives, by its manifest: floating-point values are normally
// distributed and take a gradient, all others are 0 (so that indices are in range).
TensorBundle synthetic_bundle(const std::vector<TensorFacts>& outputs, bool is_tuple,
                              std::int64_t samples);

}  // namespace funcpipe
