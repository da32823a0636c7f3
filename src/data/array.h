// A tensor read from a file, with whatever keeps its bytes alive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace funcpipe {

// The bytes of `view` stand in the file's buffer: they need not be aligned to the element size.
struct Array {
  TensorView view;
  std::shared_ptr<const void> owner;
};

// Bytes of a tensor, or nothing when a dimension is negative or the product does not fit 63 bits:
// shapes that come from files are not to be trusted.
std::optional<std::uint64_t> byte_size(DType dtype, const Shape& shape);

// Throws Error(kDataLoss), naming the file and both sizes, unless `found` bytes are what the
// tensor takes.
void check_byte_size(DType dtype, const Shape& shape, std::uint64_t found, const std::string& name);

}  // namespace funcpipe
