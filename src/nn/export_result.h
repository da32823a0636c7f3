// A trained model for PyTorch, in one file.
#pragma once

#include <filesystem>

#include "core/tensor.h"
#include "nn/model_archive.h"

namespace funcpipe {

// Writes the whole chain with the given weights (every parameter and buffer of the model; more are
// ignored) as one TorchScript archive in evaluation mode, for torch.jit.load. Its state_dict has
// the names of nn.Sequential ("0.weight"), and it takes what the archive's first layer takes:
// normalising belongs to the data and is not in it. Throws Error(kDataLoss) naming a missing or
// misshapen tensor.
void export_torchscript(const ModelArchive& archive, const NamedTensors& weights,
                        const std::filesystem::path& path);

}  // namespace funcpipe
