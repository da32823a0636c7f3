// The border to libtorch: tensors of core/tensor.h to at::Tensor and back without copying, and
// libtorch's exceptions to funcpipe::Error. Only for src/nn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace at {
class Tensor;
}
namespace c10 {
enum class ScalarType : std::int8_t;
}

namespace funcpipe::nn {

c10::ScalarType to_scalar_type(DType dtype);
// Throws Error(kInvalidArgument) for a type that has no place in DType (complex, quantised).
DType to_dtype(c10::ScalarType type);

// A tensor over the view's own bytes, which `owner` keeps alive (copied only when they are not
// aligned to an element). The view must be present and no alias.
at::Tensor to_tensor(const TensorView& view, std::shared_ptr<const void> owner);
// One tensor for each member: aliases are the very same tensor, absent members are undefined.
std::vector<at::Tensor> to_tensors(const TensorBundle& bundle);

// Borrows from `tensor`, which must be contiguous and outlive the view.
TensorView to_view(const at::Tensor& tensor);
// Owns the tensors (made contiguous, detached). A tensor that occurs twice becomes an alias, an
// undefined one an absent member; requires_grad is the tensors' own.
TensorBundle to_bundle(const std::vector<at::Tensor>& tensors, bool is_tuple);
// Snapshot: clones.
NamedTensors to_named_tensors(const std::vector<std::pair<std::string, at::Tensor>>& tensors);

// "[32, 1, 28, 28] float32", or a list of such in brackets for a tuple.
std::string describe(const std::vector<at::Tensor>& tensors);

// Turns the exception being handled into a funcpipe::Error "context: one line of its message". To
// be called within a catch block; an Error passes as it is, with the context.
[[noreturn]] void rethrow_as_error(std::string_view context);

}  // namespace funcpipe::nn
