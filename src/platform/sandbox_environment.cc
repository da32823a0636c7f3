#include "platform/sandbox_environment.h"

#include <cmath>
#include <map>

#include "platform/cpu_features.h"

namespace funcpipe {
namespace {

using Variables = std::map<std::string, std::string>;

Variables defaults(const PlatformSpec& spec, const LocalFunction& function) {
  Variables variables = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin"},
      {"LANG", "en_US.UTF-8"},
      {"TZ", ":UTC"},
      {"AWS_REGION", "us-east-1"},
      {"AWS_DEFAULT_REGION", "us-east-1"},
      {"AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023"},
      {"LAMBDA_TASK_ROOT", "/var/task"},
      {"LAMBDA_RUNTIME_DIR", "/var/runtime"},
      {"OMP_NUM_THREADS", std::to_string(thread_count(spec, function.memory_mb))},
      {"OMP_WAIT_POLICY", "passive"}};
  if (const auto coretype = openblas_coretype()) variables["OPENBLAS_CORETYPE"] = *coretype;
  return variables;
}

void add_links(Variables& variables, const LocalHostConfig& config) {
  if (std::isfinite(config.uplink_bytes_per_second)) {
    variables["FUNCPIPE_UPLINK"] =
        fmt::format("{}", config.uplink_bytes_per_second / config.time_dilation);
  }
  if (std::isfinite(config.downlink_bytes_per_second)) {
    variables["FUNCPIPE_DOWNLINK"] =
        fmt::format("{}", config.downlink_bytes_per_second / config.time_dilation);
  }
  if (config.latency > Duration::zero()) {
    const double real_ns = static_cast<double>(config.latency.count()) * config.time_dilation;
    variables["FUNCPIPE_LATENCY_NS"] = fmt::format("{}", std::llround(real_ns));
  }
}

}  // namespace

std::vector<std::string> sandbox_environment(const LocalHostConfig& config,
                                             const PlatformSpec& spec,
                                             const LocalFunction& function,
                                             const std::string& runtime_api) {
  Variables variables = defaults(spec, function);
  add_links(variables, config);
  for (const auto& assignment : config.environment) {
    const auto equals = assignment.find('=');
    variables[assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
  variables["_HANDLER"] = function.name;
  variables["AWS_LAMBDA_RUNTIME_API"] = runtime_api;
  variables["AWS_LAMBDA_FUNCTION_NAME"] = function.name;
  variables["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] = std::to_string(function.memory_mb);
  variables["AWS_LAMBDA_FUNCTION_VERSION"] = "$LATEST";
  variables["AWS_LAMBDA_INITIALIZATION_TYPE"] = "on-demand";
  variables["AWS_LAMBDA_LOG_GROUP_NAME"] = "/aws/lambda/" + function.name;
  variables["AWS_LAMBDA_LOG_STREAM_NAME"] = "local";
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::string function_arn(const std::string& name) {
  return "arn:aws:lambda:us-east-1:000000000000:function:" + name;
}

}  // namespace funcpipe
