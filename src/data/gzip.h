// Decompression of gzip files in memory.
#pragma once

#include <string>

#include "base/buffer.h"

namespace funcpipe {

// Whether `bytes` begin like a gzip file.
bool is_gzip(ByteView bytes);

// The content of a gzip file of one or more members. `name` is for error texts. Throws
// Error(kDataLoss) when the file is truncated or damaged.
Buffer gunzip(ByteView bytes, const std::string& name);

}  // namespace funcpipe
