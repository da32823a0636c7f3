#include "platform/cpu_features.h"

namespace funcpipe {

std::optional<std::string_view> openblas_coretype() {
#if defined(__x86_64__)
  // The compiler's support functions ask CPUID and whether the kernel saves the wide registers.
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "HASWELL";
#endif
  return std::nullopt;
}

}  // namespace funcpipe
