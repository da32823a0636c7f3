// Synthetic profiles of the paper's four models (paper_models.h), for tests and comparisons of
// planners where nobody can run the models on the platform. Bytes follow from the layers' shapes;
// times are a roofline of what a vCPU computes and moves:
//
//   forward  = flops / (vCPUs * rate * efficiency) + bytes moved / (vCPUs * memory bandwidth)
//   backward = 2 * forward          update = 3 * parameter bytes / (vCPUs * memory bandwidth)
//
// with vCPUs in proportion to the memory, and above one of them a serial share of the work
// (Amdahl's law). Deterministic. Whether a layer fits into memory is left to the planner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/profile.h"
#include "planner/paper_models.h"

namespace funcpipe {

// Constants of the paper's two platforms.
enum class PaperPlatform {
  kAwsLambda,  // 512..10,240 MB, 1 vCPU for 1,769 MB, 70 MB/s each way, 40 ms
  kAlibaba,    // 256, 512, 1,024, 3,072 MB at speeds 0.1, 0.2, 0.4, 1 of 2 vCPUs, 50 MB/s, 50 ms
};

// The machine: the default is one hyper-thread of a server core of about 2.5 GHz with AVX2.
struct PaperProfileOptions {
  PaperPlatform platform = PaperPlatform::kAwsLambda;
  std::int64_t micro_batch_size = 4;
  double flops_per_second = 40e9;  // of a vCPU, at best
  double efficiency = 0.6;         // of convolutions and matrix products
  double memory_bytes_per_second = 5e9;
  double serial_share = 0.05;
};

// Throws Error(kInvalidArgument) for a name not among paper_model_names().
ModelProfile paper_profile(std::string_view name, const PaperProfileOptions& options = {});
inline std::vector<std::string> paper_profile_names() { return paper_model_names(); }

}  // namespace funcpipe
