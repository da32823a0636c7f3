#include "core/tensor.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace funcpipe {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<DTypeFacts, kDTypeCount> kFacts = {{
    {"float32", 4},
    {"float64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"int64", 8},
    {"int32", 4},
    {"int16", 2},
    {"int8", 1},
    {"uint8", 1},
    {"bool", 1},
}};

}  // namespace

std::size_t size_of(DType dtype) { return kFacts.at(static_cast<std::size_t>(dtype)).size; }

std::string_view to_string(DType dtype) { return kFacts.at(static_cast<std::size_t>(dtype)).name; }

DType dtype_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<DType>(i);
  }
  fail(ErrorCode::kInvalidArgument,
       "unknown element type '{}'; known are float32, float64, float16, bfloat16, int64, int32, "
       "int16, int8, uint8, bool",
       name);
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return count;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace funcpipe
