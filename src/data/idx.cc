#include "data/idx.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kSizeBytes = 4;

std::optional<DType> dtype_of(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0B:
      return DType::kInt16;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat32;
    case 0x0E:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

std::int64_t big_endian_size(const std::byte* bytes) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < kSizeBytes; ++i) value = value << 8 | std::to_integer<int>(bytes[i]);
  return value;
}

DType parse_magic(ByteView bytes, const std::string& name) {
  if (bytes.size() < kMagicBytes) {
    fail(ErrorCode::kDataLoss, "{}: {} bytes are too few for an IDX file", name, bytes.size());
  }
  const auto dtype = dtype_of(bytes[2]);
  if (bytes[0] != std::byte{0} || bytes[1] != std::byte{0} || !dtype) {
    const auto byte = [&](int i) {
      return std::to_integer<int>(bytes[static_cast<std::size_t>(i)]);
    };
    fail(ErrorCode::kInvalidArgument,
         "{}: not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}, expected 00 00, a type "
         "(08, 09, 0b, 0c, 0d or 0e) and the number of dimensions",
         name, byte(0), byte(1), byte(2), byte(3));
  }
  return *dtype;
}

void swap_elements(std::span<std::byte> data, std::size_t element) {
  if (element == 1) return;
  for (auto* at = data.data(); at != data.data() + data.size(); at += element) {
    std::reverse(at, at + element);
  }
}

}  // namespace

bool is_idx(ByteView bytes) {
  return bytes.size() >= kMagicBytes && bytes[0] == std::byte{0} && bytes[1] == std::byte{0} &&
         dtype_of(bytes[2]).has_value() && bytes[3] != std::byte{0};
}

Array parse_idx(Buffer bytes, const std::string& name) {
  const auto dtype = parse_magic(bytes.view(), name);
  const auto dimensions = std::to_integer<std::size_t>(bytes.data()[3]);
  const auto header = kMagicBytes + dimensions * kSizeBytes;
  if (bytes.size() < header) {
    fail(ErrorCode::kDataLoss,
         "{}: truncated: an IDX header of {} dimensions needs {} bytes, the file has {}", name,
         dimensions, header, bytes.size());
  }
  Shape shape;
  for (std::size_t i = 0; i < dimensions; ++i) {
    shape.push_back(big_endian_size(bytes.data() + kMagicBytes + i * kSizeBytes));
  }
  check_byte_size(dtype, shape, bytes.size() - header, name);
  swap_elements(bytes.span().subspan(header), size_of(dtype));
  const auto owner = std::make_shared<const Buffer>(std::move(bytes));
  return {{dtype, std::move(shape), owner->view().subspan(header)}, owner};
}

}  // namespace funcpipe
