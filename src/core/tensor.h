// Tensors as plain descriptions over bytes: what crosses a cut, what a dataset gives, what a
// safetensors file holds. libtorch never appears here; src/nn turns these into at::Tensor and back
// without copying.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"

namespace funcpipe {

// The values are written to disk and to the wire: never renumber.
enum class DType : std::uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt64 = 4,
  kInt32 = 5,
  kInt16 = 6,
  kInt8 = 7,
  kUInt8 = 8,
  kBool = 9,
};
constexpr int kDTypeCount = 10;

std::size_t size_of(DType dtype);
std::string_view to_string(DType dtype);         // "float32"
DType dtype_from_string(std::string_view name);  // throws Error(kInvalidArgument)

using Shape = std::vector<std::int64_t>;
std::int64_t element_count(const Shape& shape);  // 1 for a scalar
std::string to_string(const Shape& shape);       // "[32, 1, 28, 28]"

// Borrowed, contiguous, little-endian, row-major tensor data.
struct TensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  ByteView data;  // element_count(shape) * size_of(dtype) bytes; empty when not present
  bool requires_grad = false;  // whether the receiver has to send a gradient back for it
  bool present = true;         // false: "no gradient" in a gradient bundle
  int alias_of = -1;           // >= 0: the same tensor as that earlier member; then data is empty
};

// What one layer hands to the next: one tensor, or a tuple of them. `owner` keeps the bytes alive.
struct TensorBundle {
  std::vector<TensorView> tensors;
  bool is_tuple = false;
  std::shared_ptr<const void> owner;
};

// A tensor with its name, as in a state_dict or a safetensors file. Borrowed like TensorView.
struct NamedTensor {
  std::string name;
  TensorView tensor;
};

// Named tensors and whatever keeps their bytes alive.
struct NamedTensors {
  std::vector<NamedTensor> tensors;
  std::shared_ptr<const void> owner;
};

}  // namespace funcpipe
