#include "data/array.h"

#include "base/error.h"

namespace funcpipe {

std::optional<std::uint64_t> byte_size(DType dtype, const Shape& shape) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const auto size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

void check_byte_size(DType dtype, const Shape& shape, std::uint64_t found,
                     const std::string& name) {
  const auto expected = byte_size(dtype, shape);
  if (expected == found) return;
  fail(ErrorCode::kDataLoss, "{}: {}: {} {} takes {} bytes after the header, the file has {}", name,
       expected && *expected < found ? "too long" : "truncated", to_string(dtype), to_string(shape),
       expected ? std::to_string(*expected) : "more than 2^63", found);
}

}  // namespace funcpipe
