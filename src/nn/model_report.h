// What `funcpipe model inspect` prints.
#pragma once

#include <string>

#include "core/manifest.h"

namespace funcpipe {

// A table for people: index, name, kind, parameters, output of each layer for one sample, its
// bytes; then totals.
std::string model_report(const ModelManifest& manifest);

}  // namespace funcpipe
