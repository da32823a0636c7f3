#include "cli/local_run.h"

#include <chrono>
#include <cstdlib>
#include <random>
#include <system_error>

#include <fmt/chrono.h>

#include "cli/process_start.h"
#include "coordinator/coordinator.h"

namespace funcpipe {

std::string unique_run_id(const std::string& name) {
  std::random_device random;
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{}-{:%Y%m%d-%H%M%S}-{:08x}", name, fmt::gmtime(now), random());
}

LocalHostConfig local_host_config(const LocalPlatformSpec& local, const std::set<int>& memory_mb,
                                  const std::filesystem::path& logs) {
  LocalHostConfig config;
  for (const int option : memory_mb) config.functions.push_back({function_name(option), option});
  config.command = {executable_path(), "worker"};
  // The user's choice of BLAS kernels goes before the host's.
  if (const char* coretype = std::getenv("OPENBLAS_CORETYPE"))
    config.environment.push_back(fmt::format("OPENBLAS_CORETYPE={}", coretype));
  config.time_limit = local.time_limit;
  config.max_concurrency = local.max_concurrency;
  config.memory_limit = local.memory_limit;
  config.cpu_limit = local.cpu_limit;
  config.time_dilation = local.time_dilation;
  config.cold_start = local.cold_start;
  config.uplink_bytes_per_second = local.uplink_bytes_per_second;
  config.downlink_bytes_per_second = local.downlink_bytes_per_second;
  config.latency = local.latency;
  config.log_dir = logs;
  return config;
}

OwnStore::~OwnStore() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace funcpipe
