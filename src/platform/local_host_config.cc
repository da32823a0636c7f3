#include "platform/local_host_config.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/platform_spec.h"

namespace funcpipe {
namespace {

bool is_function_name(std::string_view name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), allowed);
}

LocalFunction read_function(const ConfigNode& node) {
  ConfigReader reader(node);
  LocalFunction function;
  function.name = reader.required<std::string>("name");
  function.memory_mb = static_cast<int>(reader.required<std::int64_t>("memory_mb"));
  reader.finish();
  const PlatformSpec spec = aws_lambda_spec();
  if (!is_function_name(function.name)) {
    reader.reject("name", "a function's name is 1 to 64 letters, digits, '-' and '_'");
  }
  if (function.memory_mb < spec.min_memory_mb || function.memory_mb > spec.max_memory_mb) {
    reader.reject("memory_mb",
                  fmt::format("must be {} to {}", spec.min_memory_mb, spec.max_memory_mb));
  }
  return function;
}

double read_probability(ConfigReader& reader, std::string_view key) {
  const double value = reader.optional<double>(key, 0);
  if (value < 0 || value > 1) reader.reject(key, "a probability is 0 to 1");
  return value;
}

FaultSpec read_faults(const ConfigNode& node) {
  ConfigReader reader(node);
  FaultSpec faults;
  faults.seed = static_cast<std::uint64_t>(reader.optional<std::int64_t>("seed", 0));
  faults.throttle_probability = read_probability(reader, "throttle_probability");
  faults.duplicate_probability = read_probability(reader, "duplicate_probability");
  faults.kill_probability = read_probability(reader, "kill_probability");
  faults.kill_after_min = reader.optional<Duration>("kill_after_min", Duration::zero());
  faults.kill_after_max = reader.optional<Duration>("kill_after_max", faults.kill_after_min);
  reader.finish();
  if (faults.kill_after_max < faults.kill_after_min) {
    reader.reject("kill_after_max", "must not be below kill_after_min");
  }
  return faults;
}

double read_rate(ConfigReader& reader, std::string_view key) {
  const double rate = reader.optional<double>(key, LocalHostConfig::kUnlimited);
  if (!(rate > 0))
    reader.reject(key, "must be above 0 bytes per second; leave it out for no limit");
  return rate;
}

// Variables that only the host may set, since the runtime's protocol rests on them.
bool is_reserved(std::string_view assignment) {
  return assignment.starts_with("AWS_LAMBDA_") || assignment.starts_with("_HANDLER=") ||
         assignment.starts_with("FUNCPIPE_UPLINK=") ||
         assignment.starts_with("FUNCPIPE_DOWNLINK=") ||
         assignment.starts_with("FUNCPIPE_LATENCY_NS=");
}

void read_command(ConfigReader& reader, LocalHostConfig& config) {
  config.command = reader.optional_list<std::string>("command");
  if (config.command.empty())
    reader.reject("command", "must hold the path of the worker's executable");
  config.environment = reader.optional_list<std::string>("environment");
  for (const auto& assignment : config.environment) {
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      reader.reject("environment", fmt::format("'{}' is not NAME=value", assignment));
    }
    if (is_reserved(assignment)) {
      reader.reject("environment",
                    fmt::format("{} is set by the host", assignment.substr(0, equals)));
    }
  }
}

void read_functions(ConfigReader& reader, LocalHostConfig& config) {
  const ConfigNode list = reader.required_node("functions");
  std::set<std::string> names;
  for (const auto& item : list.items()) {
    config.functions.push_back(read_function(item));
    const auto& name = config.functions.back().name;
    if (!names.insert(name).second) item.reject(fmt::format("function '{}' stands twice", name));
  }
}

void read_limits(ConfigReader& reader, LocalHostConfig& config) {
  config.time_limit = reader.optional<Duration>("time_limit", config.time_limit);
  config.memory_limit = reader.optional<bool>("memory_limit", config.memory_limit);
  config.cpu_limit = reader.optional<bool>("cpu_limit", config.cpu_limit);
  config.use_cgroups = reader.optional<bool>("use_cgroups", config.use_cgroups);
  config.time_dilation = reader.optional<double>("time_dilation", config.time_dilation);
  config.idle_timeout = reader.optional<Duration>("idle_timeout", config.idle_timeout);
  const auto concurrency = reader.optional<std::int64_t>("max_concurrency", config.max_concurrency);
  if (config.time_limit <= Duration::zero()) reader.reject("time_limit", "must be above 0");
  if (config.idle_timeout <= Duration::zero()) reader.reject("idle_timeout", "must be above 0");
  if (config.time_dilation < 1e-3 || config.time_dilation > 1e4) {
    reader.reject("time_dilation", "must be 0.001 to 10000; 1 is real time");
  }
  if (concurrency < 1 || concurrency > 10000)
    reader.reject("max_concurrency", "must be 1 to 10000");
  config.max_concurrency = static_cast<int>(concurrency);
}

std::string exact(Duration duration) { return fmt::format("{} ns", duration.count()); }

}  // namespace

LocalHostConfig LocalHostConfig::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  LocalHostConfig config;
  read_functions(reader, config);
  read_command(reader, config);
  read_limits(reader, config);
  config.cold_start = reader.optional<Duration>("cold_start", config.cold_start);
  config.latency = reader.optional<Duration>("latency", config.latency);
  config.uplink_bytes_per_second = read_rate(reader, "uplink_bytes_per_second");
  config.downlink_bytes_per_second = read_rate(reader, "downlink_bytes_per_second");
  config.log_dir = reader.optional<std::string>("log_dir", "");
  const auto port = reader.optional<std::int64_t>("port", 0);
  if (port < 0 || port > 65535) reader.reject("port", "must be 0 (any) to 65535");
  config.port = static_cast<std::uint16_t>(port);
  if (const auto faults = reader.optional_node("faults")) config.faults = read_faults(*faults);
  reader.finish();
  return config;
}

nlohmann::json LocalHostConfig::to_json() const {
  nlohmann::json json = {{"command", command},
                         {"environment", environment},
                         {"time_limit", exact(time_limit)},
                         {"max_concurrency", max_concurrency},
                         {"memory_limit", memory_limit},
                         {"cpu_limit", cpu_limit},
                         {"use_cgroups", use_cgroups},
                         {"time_dilation", time_dilation},
                         {"cold_start", exact(cold_start)},
                         {"latency", exact(latency)},
                         {"log_dir", log_dir.string()},
                         {"port", port},
                         {"idle_timeout", exact(idle_timeout)}};
  json["functions"] = nlohmann::json::array();
  for (const auto& function : functions) {
    json["functions"].push_back({{"name", function.name}, {"memory_mb", function.memory_mb}});
  }
  if (std::isfinite(uplink_bytes_per_second))
    json["uplink_bytes_per_second"] = uplink_bytes_per_second;
  if (std::isfinite(downlink_bytes_per_second)) {
    json["downlink_bytes_per_second"] = downlink_bytes_per_second;
  }
  json["faults"] = {{"seed", static_cast<std::int64_t>(faults.seed)},
                    {"throttle_probability", faults.throttle_probability},
                    {"duplicate_probability", faults.duplicate_probability},
                    {"kill_probability", faults.kill_probability},
                    {"kill_after_min", exact(faults.kill_after_min)},
                    {"kill_after_max", exact(faults.kill_after_max)}};
  return json;
}

}  // namespace funcpipe
