// NumPy's .npy files, versions 1 to 3.
#pragma once

#include <string>

#include "base/buffer.h"
#include "data/array.h"

namespace funcpipe {

bool is_npy(ByteView bytes);

// `name` is for error texts. Throws Error(kInvalidArgument), saying how to save the array instead,
// for Fortran order, big-endian, object, structured and unsupported element types; kDataLoss for a
// file that is too short or too long or whose header is damaged.
Array parse_npy(Buffer bytes, const std::string& name);

}  // namespace funcpipe
