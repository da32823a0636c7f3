// Models that need no Python: the same archives as the exporter writes, made in C++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "nn/model_archive.h"

namespace funcpipe {

struct BuiltinModelFacts {
  std::string name;
  std::string summary;
  nlohmann::json options;  // every option with its default
};

// All built-in models, for help texts.
std::vector<BuiltinModelFacts> builtin_models();
bool is_builtin_model(std::string_view name);

// Builds `name` with the given options (docs/models.md lists them); parameters are initialised as
// torch.nn does, from `seed` alone. Throws Error(kInvalidArgument) naming an unknown model or
// option and the nearest right one, or an impossible value.
ModelArchive build_builtin_model(std::string_view name, const nlohmann::json& options,
                                 std::uint64_t seed);

}  // namespace funcpipe
