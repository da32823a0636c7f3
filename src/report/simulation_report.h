// What a simulation says, for people and for programs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/platform_spec.h"
#include "sim/simulation_result.h"

namespace funcpipe {

std::string simulation_table(const SimulationResult& result, const PlatformSpec& platform);
nlohmann::json simulation_json(const SimulationResult& result, const PlatformSpec& platform);

}  // namespace funcpipe
