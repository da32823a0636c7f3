// Limits and prices of a function platform and its object store, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace funcpipe {

struct PlatformSpec {
  std::string name;
  int min_memory_mb = 128;
  int max_memory_mb = 10240;
  double memory_mb_per_vcpu = 1769;
  Duration max_time_limit = std::chrono::seconds(900);
  std::uint64_t max_request_bytes = 6ULL * 1024 * 1024;  // RequestResponse payload and answer
  std::uint64_t max_event_bytes = 1ULL * 1024 * 1024;    // Event payload
  std::vector<int> memory_options_mb;                    // what planner and profiler try by default
  double usd_per_gb_second = 1.66667e-5;                 // GB = 1024 MiB, as billed
  double usd_per_vcpu_second = 0;                        // where CPU is billed beside memory
  double usd_per_invocation = 0.2e-6;
  double usd_per_put = 0.005e-3;   // PUT, COPY, POST, LIST
  double usd_per_get = 0.0004e-3;  // GET, HEAD; DELETE is free
};

// AWS Lambda and S3 in us-east-1, x86, as published in August 2026 (docs/platforms.md has the
// sources).
PlatformSpec aws_lambda_spec();

// Alibaba Cloud Function Compute 3.0 and OSS, with one vCPU for every 2 GB (docs/platforms.md).
PlatformSpec aliyun_fc_spec();
// The specification called "aws-lambda", "aliyun-fc" or "local" (as aws-lambda). Throws
// Error(kInvalidArgument) naming those there are.
PlatformSpec platform_spec(std::string_view name);

// vCPUs that a function of this memory may use, e.g. 1.0 at 1769.
double vcpus(const PlatformSpec& spec, int memory_mb);
// Threads for its computation: the vCPUs rounded up, at least one.
int thread_count(const PlatformSpec& spec, int memory_mb);
double gb_seconds(int memory_mb, Duration billed);
// What one second of a running function of this memory costs.
double usd_per_second(const PlatformSpec& spec, int memory_mb);

}  // namespace funcpipe
