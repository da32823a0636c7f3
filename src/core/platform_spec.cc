#include "core/platform_spec.h"

#include <algorithm>
#include <cmath>

namespace funcpipe {

PlatformSpec aws_lambda_spec() {
  PlatformSpec spec;
  spec.name = "aws-lambda";
  return spec;
}

double vcpus(const PlatformSpec& spec, int memory_mb) {
  return memory_mb / spec.memory_mb_per_vcpu;
}

int thread_count(const PlatformSpec& spec, int memory_mb) {
  return std::max(1, static_cast<int>(std::ceil(vcpus(spec, memory_mb))));
}

double gb_seconds(int memory_mb, Duration billed) {
  return memory_mb / 1024.0 * to_seconds(billed);
}

}  // namespace funcpipe
