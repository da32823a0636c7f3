// IDX, the format of MNIST: magic 00 00 <type> <dimensions>, big-endian 32-bit sizes, big-endian
// data.
#pragma once

#include <string>

#include "base/buffer.h"
#include "data/array.h"

namespace funcpipe {

bool is_idx(ByteView bytes);

// The array of an IDX file (already decompressed), its elements turned into little-endian. `name`
// is for error texts. Throws Error(kInvalidArgument) for a bad magic or type, kDataLoss with
// expected and found sizes for a file that is too short or too long.
Array parse_idx(Buffer bytes, const std::string& name);

}  // namespace funcpipe
