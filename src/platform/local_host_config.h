// What a local host is told: functions, how to run them, limits and faults.
//
// Times and rates are in the platform's time; the host multiplies and divides by time_dilation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "base/units.h"

namespace funcpipe {

struct LocalFunction {
  std::string name;  // 1-64 of A-Z a-z 0-9 - _
  int memory_mb = 1769;
  bool operator==(const LocalFunction&) const = default;
};

// Faults that the host injects, drawn in the order of arrival from one seeded stream.
struct FaultSpec {
  std::uint64_t seed = 0;
  double throttle_probability = 0;   // an invocation is answered 429
  double duplicate_probability = 0;  // an event is delivered twice; the second answer is dropped
  double kill_probability = 0;       // the process is killed ...
  Duration kill_after_min{};         // ... so long after delivery
  Duration kill_after_max{};
  bool operator==(const FaultSpec&) const = default;
};

struct LocalHostConfig {
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  std::vector<LocalFunction> functions;
  std::vector<std::string> command;      // path of the worker's executable and its arguments
  std::vector<std::string> environment;  // "NAME=value", added to what Lambda sets
  Duration time_limit = std::chrono::seconds(900);
  int max_concurrency = 1000;
  bool memory_limit = true;
  bool cpu_limit = true;
  bool use_cgroups = true;  // false: the fallback, as where cgroups are not permitted
  double time_dilation = 1;
  Duration cold_start{};                        // waited before a process starts; not billed
  double uplink_bytes_per_second = kUnlimited;  // per function; the worker keeps to it
  double downlink_bytes_per_second = kUnlimited;
  Duration latency{};
  std::filesystem::path log_dir;                     // empty: no log files
  std::uint16_t port = 0;                            // 0: any
  Duration idle_timeout = std::chrono::minutes(10);  // after which a warm process is ended
  FaultSpec faults;

  // Throws Error(kInvalidArgument) naming file, line and key.
  static LocalHostConfig from_config(const ConfigNode& node);
  // Readable by from_config again, with equal result.
  nlohmann::json to_json() const;
  bool operator==(const LocalHostConfig&) const = default;
};

}  // namespace funcpipe
