#include "core/platform_spec.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace funcpipe {

PlatformSpec aws_lambda_spec() {
  PlatformSpec spec;
  spec.name = "aws-lambda";
  spec.memory_options_mb = {512, 1024, 2048, 3072, 4096, 6144, 8192, 10240};
  return spec;
}

PlatformSpec aliyun_fc_spec() {
  constexpr double kUsdPerUnit = 2e-5;  // Function Compute bills in "CU"
  PlatformSpec spec;
  spec.name = "aliyun-fc";
  spec.max_memory_mb = 32768;
  spec.memory_mb_per_vcpu = 2048;
  spec.max_time_limit = std::chrono::hours(24);
  spec.max_request_bytes = 32ULL * 1024 * 1024;
  spec.max_event_bytes = 128ULL * 1024;
  spec.memory_options_mb = {512, 1024, 2048, 4096, 8192, 16384, 32768};
  spec.usd_per_gb_second = 0.15 * kUsdPerUnit;
  spec.usd_per_vcpu_second = kUsdPerUnit;
  spec.usd_per_invocation = 75e-4 * kUsdPerUnit;
  spec.usd_per_put = spec.usd_per_get = 1.4e-7;
  return spec;
}

PlatformSpec platform_spec(std::string_view name) {
  if (name == "aliyun-fc") return aliyun_fc_spec();
  if (name != "aws-lambda" && name != "local") {
    fail(ErrorCode::kInvalidArgument,
         "no prices and limits are known for the platform '{}'; known are local, aws-lambda and "
         "aliyun-fc",
         name);
  }
  auto spec = aws_lambda_spec();
  spec.name = name;
  return spec;
}

double vcpus(const PlatformSpec& spec, int memory_mb) {
  return memory_mb / spec.memory_mb_per_vcpu;
}

int thread_count(const PlatformSpec& spec, int memory_mb) {
  return std::max(1, static_cast<int>(std::ceil(vcpus(spec, memory_mb))));
}

double usd_per_second(const PlatformSpec& spec, int memory_mb) {
  return memory_mb / 1024.0 * spec.usd_per_gb_second +
         vcpus(spec, memory_mb) * spec.usd_per_vcpu_second;
}

double gb_seconds(int memory_mb, Duration billed) {
  return memory_mb / 1024.0 * to_seconds(billed);
}

}  // namespace funcpipe
