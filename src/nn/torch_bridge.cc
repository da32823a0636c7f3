#include "nn/torch_bridge.h"

#include <array>
#include <cstring>
#include <new>
#include <unordered_map>

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace funcpipe::nn {
namespace {

constexpr std::array<c10::ScalarType, kDTypeCount> kScalarTypes = {
    at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
    at::kInt,   at::kShort,  at::kChar, at::kByte,     at::kBool};

bool is_aligned(const void* data, std::size_t element_size) {
  return reinterpret_cast<std::uintptr_t>(data) % element_size == 0;
}

// The line of a libtorch message that says what is wrong: without C++ backtrace, and without the
// TorchScript traceback, whose last line starts with the original error.
std::string essence(std::string_view message) {
  for (const std::string_view marker : {"RuntimeError: ", "DefaultCPUAllocator: "}) {
    const auto at = message.rfind(marker);
    if (at != std::string_view::npos) message.remove_prefix(at + marker.size());
  }
  const auto begin = message.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return "unknown error";
  message.remove_prefix(begin);
  return std::string(message.substr(0, message.find('\n')));
}

ErrorCode code_of(std::string_view message) {
  const bool memory = message.find("can't allocate memory") != std::string_view::npos ||
                      message.find("not enough memory") != std::string_view::npos;
  return memory ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument;
}

}  // namespace

c10::ScalarType to_scalar_type(DType dtype) {
  return kScalarTypes.at(static_cast<std::size_t>(dtype));
}

DType to_dtype(c10::ScalarType type) {
  for (std::size_t i = 0; i < kScalarTypes.size(); ++i) {
    if (kScalarTypes[i] == type) return static_cast<DType>(i);
  }
  fail(ErrorCode::kInvalidArgument, "tensors of type {} are not supported", c10::toString(type));
}

at::Tensor to_tensor(const TensorView& view, std::shared_ptr<const void> owner) {
  const auto options = at::TensorOptions().dtype(to_scalar_type(view.dtype));
  auto* data = const_cast<std::byte*>(view.data.data());
  if (!is_aligned(data, size_of(view.dtype))) {
    auto copy = at::empty(view.shape, options);
    std::memcpy(copy.data_ptr(), data, view.data.size());
    return copy;
  }
  return at::from_blob(
      data, view.shape, [owner = std::move(owner)](void*) {}, options);
}

std::vector<at::Tensor> to_tensors(const TensorBundle& bundle) {
  std::vector<at::Tensor> tensors;
  for (const auto& view : bundle.tensors) {
    if (view.alias_of >= 0) {
      tensors.push_back(tensors.at(static_cast<std::size_t>(view.alias_of)));
    } else {
      tensors.push_back(view.present ? to_tensor(view, bundle.owner) : at::Tensor());
    }
  }
  return tensors;
}

TensorView to_view(const at::Tensor& tensor) {
  return {.dtype = to_dtype(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .data = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()},
          .requires_grad = tensor.requires_grad()};
}

TensorBundle to_bundle(const std::vector<at::Tensor>& tensors, bool is_tuple) {
  TensorBundle bundle;
  bundle.is_tuple = is_tuple;
  auto kept = std::make_shared<std::vector<at::Tensor>>();
  std::unordered_map<const c10::TensorImpl*, int> first_place;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) {
      bundle.tensors.emplace_back().present = false;
      continue;
    }
    const auto [place, is_new] =
        first_place.emplace(tensor.unsafeGetTensorImpl(), static_cast<int>(bundle.tensors.size()));
    auto data = tensor.detach().contiguous();
    auto view = to_view(data);
    view.requires_grad = tensor.requires_grad();
    if (is_new) {
      kept->push_back(std::move(data));
    } else {
      view.alias_of = place->second;
      view.data = {};
    }
    bundle.tensors.push_back(std::move(view));
  }
  bundle.owner = std::move(kept);
  return bundle;
}

NamedTensors to_named_tensors(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  NamedTensors result;
  auto kept = std::make_shared<std::vector<at::Tensor>>();
  for (const auto& [name, tensor] : tensors) {
    kept->push_back(tensor.detach().clone(at::MemoryFormat::Contiguous));
    result.tensors.push_back({name, to_view(kept->back())});
  }
  result.owner = std::move(kept);
  return result;
}

std::string describe(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> members;
  for (const auto& tensor : tensors) {
    members.push_back(tensor.defined() ? fmt::format("{} {}", to_string(tensor.sizes().vec()),
                                                     to_string(to_dtype(tensor.scalar_type())))
                                       : "nothing");
  }
  if (members.size() == 1) return members.front();
  return fmt::format("({})", fmt::join(members, ", "));
}

void rethrow_as_error(std::string_view context) {
  try {
    throw;
  } catch (const Error& error) {
    throw error.with_context(context);
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kResourceExhausted, "{}: out of memory", context);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    fail(code_of(message), "{}: {}", context, essence(message));
  } catch (const std::exception& error) {
    fail(code_of(error.what()), "{}: {}", context, essence(error.what()));
  }
}

}  // namespace funcpipe::nn
