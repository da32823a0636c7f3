#include "data/npy.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;  // magic, major, minor

constexpr std::array<std::pair<std::string_view, DType>, 9> kTypes = {{
    {"<f4", DType::kFloat32},
    {"<f8", DType::kFloat64},
    {"<f2", DType::kFloat16},
    {"<i8", DType::kInt64},
    {"<i4", DType::kInt32},
    {"<i2", DType::kInt16},
    {"|i1", DType::kInt8},
    {"|u1", DType::kUInt8},
    {"|b1", DType::kBool},
}};

// The Python dictionary at the head of the file, e.g.
//   {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
class NpyHeader {
 public:
  NpyHeader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  DType dtype() const {
    const auto rest = value_of("descr");
    const auto end = rest.starts_with('\'') ? rest.find('\'', 1) : std::string_view::npos;
    if (end == std::string_view::npos) {
      fail(ErrorCode::kInvalidArgument,
           "{}: a structured array cannot be read; save one plain array per file", name_);
    }
    const auto descr = rest.substr(1, end - 1);
    for (const auto& [text, dtype] : kTypes) {
      if (text == descr) return dtype;
    }
    reject_type(descr);
  }

  void check_order() const {
    const auto rest = value_of("fortran_order");
    if (rest.starts_with("False")) return;
    if (!rest.starts_with("True")) damaged("fortran_order");
    fail(ErrorCode::kInvalidArgument,
         "{}: the array is stored in Fortran order; save numpy.ascontiguousarray(array)", name_);
  }

  Shape shape() const {
    auto rest = value_of("shape");
    const auto end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) damaged("shape");
    rest = rest.substr(1, end - 1);
    Shape shape;
    while (!(rest = skip_spaces(rest)).empty()) {
      std::int64_t size = 0;
      const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), size);
      if (parsed.ec != std::errc()) damaged("shape");
      shape.push_back(size);
      rest = skip_spaces(rest.substr(static_cast<std::size_t>(parsed.ptr - rest.data())));
      if (!rest.empty() && rest.front() != ',') damaged("shape");
      if (!rest.empty()) rest.remove_prefix(1);
    }
    return shape;
  }

 private:
  static std::string_view skip_spaces(std::string_view text) {
    const auto at = text.find_first_not_of(' ');
    return at == std::string_view::npos ? std::string_view() : text.substr(at);
  }

  // The text that begins with the value of `key`.
  std::string_view value_of(std::string_view key) const {
    const auto quoted = fmt::format("'{}'", key);
    const auto at = text_.find(quoted);
    if (at == std::string_view::npos) damaged(key);
    const auto rest = skip_spaces(text_.substr(at + quoted.size()));
    if (!rest.starts_with(':')) damaged(key);
    return skip_spaces(rest.substr(1));
  }

  [[noreturn]] void damaged(std::string_view key) const {
    fail(ErrorCode::kDataLoss, "{}: the .npy header is damaged at '{}'", name_, key);
  }

  [[noreturn]] void reject_type(std::string_view descr) const {
    if (descr == "|O") {
      fail(ErrorCode::kInvalidArgument,
           "{}: an array of Python objects cannot be read; save an array of numbers, e.g. "
           "numpy.asarray(x, dtype='float32')",
           name_);
    }
    fail(ErrorCode::kInvalidArgument,
         "{}: element type '{}' is not supported; convert with array.astype(...) to little-endian "
         "float16/32/64, int8/16/32/64, uint8 or bool",
         name_, descr);
  }

  std::string_view text_;
  const std::string& name_;
};

std::size_t byte_at(ByteView bytes, std::size_t at) {
  return std::to_integer<std::size_t>(bytes[at]);
}

// Position of the first byte of data.
std::size_t parse_prologue(ByteView bytes, std::size_t& header_begin, const std::string& name) {
  const auto truncated = [&] {
    fail(ErrorCode::kDataLoss, "{}: truncated inside the .npy header ({} bytes)", name,
         bytes.size());
  };
  if (!is_npy(bytes)) fail(ErrorCode::kInvalidArgument, "{}: not a .npy file", name);
  if (bytes.size() < kVersionEnd + 4) truncated();
  const auto major = byte_at(bytes, 6);
  if (major < 1 || major > 3) {
    fail(ErrorCode::kInvalidArgument, "{}: .npy version {} is not known; known are 1 to 3", name,
         major);
  }
  const std::size_t width = major == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) length = length << 8 | byte_at(bytes, kVersionEnd + i);
  header_begin = kVersionEnd + width;
  if (bytes.size() - header_begin < length) truncated();
  return header_begin + length;
}

}  // namespace

bool is_npy(ByteView bytes) { return as_text(bytes).starts_with(kMagic); }

Array parse_npy(Buffer bytes, const std::string& name) {
  std::size_t header_begin = 0;
  const auto data_begin = parse_prologue(bytes.view(), header_begin, name);
  const NpyHeader header(bytes.text().substr(header_begin, data_begin - header_begin), name);
  const auto dtype = header.dtype();
  header.check_order();
  auto shape = header.shape();
  check_byte_size(dtype, shape, bytes.size() - data_begin, name);
  const auto owner = std::make_shared<const Buffer>(std::move(bytes));
  return {{dtype, std::move(shape), owner->view().subspan(data_begin)}, owner};
}

}  // namespace funcpipe
