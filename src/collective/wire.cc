#include "collective/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>

#include "base/checksum.h"
#include "base/error.h"

namespace funcpipe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire format is little-endian memory");

constexpr std::uint32_t kMagic = 0x314d5046;  // "FPM1"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kAlign = Buffer::kAlignment;
constexpr std::size_t kChecked = 16;  // the checksum covers everything from here
constexpr std::uint8_t kRequiresGrad = 1, kPresent = 2;
constexpr std::array<std::byte, kAlign> kPadding{};

struct FixedHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t checksum;
  std::uint32_t is_tuple;
  std::uint32_t tensors;
  std::uint64_t header_bytes;
};
static_assert(sizeof(FixedHeader) == 32);

struct TensorHeader {
  std::uint8_t dtype;
  std::uint8_t flags;
  std::int16_t alias_of;
  std::uint32_t dimensions;
  std::uint64_t offset;  // from the object's begin
  std::uint64_t bytes;
};
static_assert(sizeof(TensorHeader) == 24);

std::size_t aligned(std::size_t size) { return (size + kAlign - 1) / kAlign * kAlign; }

std::size_t header_size(const TensorBundle& bundle) {
  std::size_t size = sizeof(FixedHeader);
  for (const auto& tensor : bundle.tensors) size += sizeof(TensorHeader) + tensor.shape.size() * 8;
  return aligned(size);
}

class Writer {
 public:
  explicit Writer(Buffer& buffer) : at_(buffer.data()) {}
  void write(const void* data, std::size_t size) {
    if (size > 0) std::memcpy(at_, data, size);
    at_ += size;
  }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(ByteView bytes) : rest_(bytes) {}
  template <typename T>
  T read() {
    T value;
    read_into(&value, sizeof(value));
    return value;
  }
  void read_into(void* target, std::size_t size) {
    if (rest_.size() < size) fail(ErrorCode::kDataLoss, "the message is cut off inside its header");
    if (size > 0) std::memcpy(target, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::size_t left() const { return rest_.size(); }

 private:
  ByteView rest_;
};

FixedHeader read_fixed_header(ByteView object) {
  const auto fixed = Reader(object).read<FixedHeader>();
  if (fixed.magic != kMagic) fail(ErrorCode::kDataLoss, "not a message: wrong magic number");
  if (fixed.version != kVersion) {
    fail(ErrorCode::kDataLoss, "message of format version {}; this build reads version {}",
         fixed.version, kVersion);
  }
  if (checksum(object.subspan(kChecked)) != fixed.checksum) {
    fail(ErrorCode::kDataLoss, "the message is damaged: its checksum does not match");
  }
  if (fixed.header_bytes > object.size()) fail(ErrorCode::kDataLoss, "the message is cut off");
  return fixed;
}

TensorView read_tensor(Reader& reader, ByteView object, int index) {
  const auto header = reader.read<TensorHeader>();
  if (header.dtype >= kDTypeCount || header.dimensions > reader.left() / 8 ||
      header.alias_of >= index) {
    fail(ErrorCode::kDataLoss, "tensor {} of the message has an impossible header", index);
  }
  TensorView tensor;
  tensor.dtype = static_cast<DType>(header.dtype);
  tensor.requires_grad = (header.flags & kRequiresGrad) != 0;
  tensor.present = (header.flags & kPresent) != 0;
  tensor.alias_of = header.alias_of;
  tensor.shape.resize(header.dimensions);
  reader.read_into(tensor.shape.data(), header.dimensions * 8);
  if (header.offset > object.size() || header.bytes > object.size() - header.offset) {
    fail(ErrorCode::kDataLoss, "tensor {} of the message reaches beyond its end", index);
  }
  tensor.data = object.subspan(header.offset, header.bytes);
  const bool has_data = tensor.present && tensor.alias_of < 0;
  const auto expected =
      has_data ? static_cast<std::uint64_t>(element_count(tensor.shape)) * size_of(tensor.dtype)
               : 0;
  if (header.bytes != expected) {
    fail(ErrorCode::kDataLoss, "tensor {} of the message has {} bytes where its shape needs {}",
         index, header.bytes, expected);
  }
  return tensor;
}

}  // namespace

EncodedMessage encode(const TensorBundle& bundle) {
  EncodedMessage message;
  message.header = Buffer(header_size(bundle));
  std::memset(message.header.data(), 0, message.header.size());
  message.parts.push_back(message.header.view());
  Writer writer(message.header);
  FixedHeader fixed{kMagic,
                    kVersion,
                    0,
                    bundle.is_tuple,
                    static_cast<std::uint32_t>(bundle.tensors.size()),
                    message.header.size()};
  writer.write(&fixed, sizeof(fixed));
  std::size_t offset = message.header.size();
  for (const auto& tensor : bundle.tensors) {
    const auto flags = static_cast<std::uint8_t>((tensor.requires_grad ? kRequiresGrad : 0) |
                                                 (tensor.present ? kPresent : 0));
    const TensorHeader header{static_cast<std::uint8_t>(tensor.dtype),
                              flags,
                              static_cast<std::int16_t>(tensor.alias_of),
                              static_cast<std::uint32_t>(tensor.shape.size()),
                              offset,
                              tensor.data.size()};
    writer.write(&header, sizeof(header));
    writer.write(tensor.shape.data(), tensor.shape.size() * 8);
    if (tensor.data.empty()) continue;
    message.parts.push_back(tensor.data);
    const std::size_t padding = aligned(tensor.data.size()) - tensor.data.size();
    if (padding > 0) message.parts.push_back(std::span(kPadding).first(padding));
    offset += tensor.data.size() + padding;
  }
  auto checked = message.parts;
  checked[0] = checked[0].subspan(kChecked);
  fixed.checksum = checksum(checked);
  std::memcpy(message.header.data(), &fixed, sizeof(fixed));
  return message;
}

TensorBundle decode(Buffer object) {
  const auto owner = std::make_shared<const Buffer>(std::move(object));
  const auto fixed = read_fixed_header(owner->view());
  TensorBundle bundle;
  bundle.is_tuple = fixed.is_tuple != 0;
  bundle.owner = owner;
  Reader reader(owner->view().first(fixed.header_bytes));
  reader.read<FixedHeader>();
  for (std::uint32_t i = 0; i < fixed.tensors; ++i) {
    bundle.tensors.push_back(read_tensor(reader, owner->view(), static_cast<int>(i)));
  }
  return bundle;
}

}  // namespace funcpipe
