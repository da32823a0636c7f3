// The environment variables of a function's process, as AWS Lambda sets them.
#pragma once

#include <string>
#include <vector>

#include "core/platform_spec.h"
#include "platform/local_host_config.h"

namespace funcpipe {

// Beside Lambda's own: OMP_NUM_THREADS, OMP_WAIT_POLICY and OPENBLAS_CORETYPE to suit the memory
// and the CPU, and FUNCPIPE_UPLINK, FUNCPIPE_DOWNLINK (bytes per second) and FUNCPIPE_LATENCY_NS,
// in real time, where the host has such limits. config.environment wins over all but Lambda's own.
std::vector<std::string> sandbox_environment(const LocalHostConfig& config,
                                             const PlatformSpec& spec,
                                             const LocalFunction& function,
                                             const std::string& runtime_api);

// "arn:aws:lambda:us-east-1:000000000000:function:<name>"
std::string function_arn(const std::string& name);

}  // namespace funcpipe
