// Makes model archives of blueprints with libtorch alone, no Python.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/model_archive.h"
#include "nn/module_blueprint.h"

namespace funcpipe::nn {

// Layer i's values are drawn from the seed derived for (kInitialise, i), so they depend on nothing
// else. Shapes are found by running the chain once on zeros. Throws Error(kInvalidArgument) naming
// the first layer that does not fit the one before.
ModelArchive build_model(std::string name, TensorFacts input,
                         const std::vector<ModuleBlueprint>& layers, std::uint64_t seed);

}  // namespace funcpipe::nn
