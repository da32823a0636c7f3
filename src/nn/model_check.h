// Whether the layers of an archive do what its manifest says.
#pragma once

#include "nn/model_archive.h"

namespace funcpipe {

// Loads every layer and runs the chain once, in evaluation mode, on two samples of zeros. Throws
// Error (kInvalidArgument) naming the first layer that does not take what the one before gives, or
// gives something else than the manifest says; what Layer throws for a damaged file. Memory and
// time of one forward pass.
void check_model(const ModelArchive& archive);

}  // namespace funcpipe
