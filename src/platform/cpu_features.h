// What this CPU can do, for the BLAS that worker processes use.
#pragma once

#include <optional>
#include <string_view>

namespace funcpipe {

// The OPENBLAS_CORETYPE that suits this CPU, or nothing when OpenBLAS's own choice is as good.
// OpenBLAS picks its kernels from a table of CPU models and falls back to SSE3 ones on a model that
// it does not know; the variable must be set before the process starts.
std::optional<std::string_view> openblas_coretype();

}  // namespace funcpipe
