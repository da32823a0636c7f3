#include "data/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "data/array.h"

namespace funcpipe {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // as the reference implementation has it
constexpr std::string_view kMetadata = "__metadata__";

// Indexed by DType.
constexpr std::array<std::string_view, kDTypeCount> kNames = {"F32", "F64", "F16", "BF16", "I64",
                                                              "I32", "I16", "I8",  "U8",   "BOOL"};

std::optional<DType> dtype_named(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<DType>(at - kNames.begin());
}

void check_writable(std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata || !names.insert(name).second) {
      fail(ErrorCode::kInvalidArgument, "safetensors: the name '{}' {}", name,
           name == kMetadata ? "is reserved" : "stands twice");
    }
    if (byte_size(tensor.dtype, tensor.shape) != tensor.data.size()) {
      fail(ErrorCode::kInvalidArgument, "safetensors: tensor '{}' of {} {} has {} bytes of data",
           name, to_string(tensor.dtype), to_string(tensor.shape), tensor.data.size());
    }
  }
}

// Indices of the tensors in the order of their bytes.
std::vector<std::size_t> data_order(std::span<const NamedTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].tensor.dtype) > size_of(tensors[b].tensor.dtype);
  });
  return order;
}

// Length, JSON, and spaces up to the alignment.
Buffer make_header(const nlohmann::ordered_json& json) {
  const auto text = json.dump();
  const auto end = kLengthBytes + text.size();
  Buffer header((end + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment);
  const std::uint64_t length = header.size() - kLengthBytes;
  std::memcpy(header.data(), &length, kLengthBytes);
  std::memcpy(header.data() + kLengthBytes, text.data(), text.size());
  std::memset(header.data() + end, ' ', header.size() - end);
  return header;
}

// One parse of one file.
class SafetensorsParser {
 public:
  SafetensorsParser(Buffer bytes, const std::string& name) : name_(name) {
    owner_->file = std::move(bytes);
  }

  NamedTensors run() {
    const auto json = parse_header();
    NamedTensors result;
    for (const auto& [name, entry] : json.items()) {
      if (name == kMetadata) continue;
      result.tensors.push_back({name, parse_tensor(name, entry)});
    }
    check_cover();
    result.owner = std::move(owner_);
    return result;
  }

 private:
  struct Owner {
    Buffer file;
    std::vector<Buffer> aligned;  // copies of tensors that stand at odd addresses of the file
  };
  struct Extent {
    std::uint64_t begin, end;
    auto operator<=>(const Extent&) const = default;
  };

  nlohmann::ordered_json parse_header() {
    const auto file = owner_->file.view();
    if (file.size() < kLengthBytes) damaged(fmt::format("{} bytes are too few", file.size()));
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), kLengthBytes);
    if (length > kMostHeaderBytes || length > file.size() - kLengthBytes) {
      damaged(fmt::format("a header of {} bytes does not fit the file of {} bytes", length,
                          file.size()));
    }
    data_ = file.subspan(kLengthBytes + length);
    auto json = nlohmann::ordered_json::parse(as_text(file.subspan(kLengthBytes, length)), nullptr,
                                              /*allow_exceptions=*/false);
    if (!json.is_object()) damaged("the header is not a JSON object");
    return json;
  }

  TensorView parse_tensor(const std::string& name, const nlohmann::ordered_json& entry) {
    const auto value = [&](const char* key) {
      const auto found = entry.is_object() ? entry.find(key) : entry.end();
      if (!entry.is_object() || found == entry.end()) {
        damaged(fmt::format("tensor '{}' has no {}", name, key));
      }
      return *found;
    };
    TensorView tensor;
    tensor.dtype = parse_dtype(name, value("dtype"));
    tensor.shape = parse_shape(name, value("shape"));
    tensor.data = parse_data(name, tensor, value("data_offsets"));
    return tensor;
  }

  DType parse_dtype(const std::string& name, const nlohmann::ordered_json& value) {
    if (!value.is_string()) damaged(fmt::format("tensor '{}': dtype is not text", name));
    const auto dtype = dtype_named(value.get_ref<const std::string&>());
    if (!dtype) {
      fail(ErrorCode::kInvalidArgument, "{}: tensor '{}' has the unsupported element type {}",
           name_, name, value.get_ref<const std::string&>());
    }
    return *dtype;
  }

  Shape parse_shape(const std::string& name, const nlohmann::ordered_json& value) {
    Shape shape;
    for (const auto size : parse_sizes(name, "shape", value)) {
      if (size > static_cast<std::uint64_t>(INT64_MAX)) {
        damaged(fmt::format("tensor '{}': a dimension of {} is too large", name, size));
      }
      shape.push_back(static_cast<std::int64_t>(size));
    }
    return shape;
  }

  std::vector<std::uint64_t> parse_sizes(const std::string& name, const char* key,
                                         const nlohmann::ordered_json& value) {
    std::vector<std::uint64_t> sizes;
    if (!value.is_array()) damaged(fmt::format("tensor '{}': {} is not a list", name, key));
    for (const auto& item : value) {
      if (!item.is_number_unsigned()) {
        damaged(fmt::format("tensor '{}': {} holds {}", name, key, item.dump()));
      }
      sizes.push_back(item.get<std::uint64_t>());
    }
    return sizes;
  }

  ByteView parse_data(const std::string& name, const TensorView& tensor,
                      const nlohmann::ordered_json& value) {
    const auto offsets = parse_sizes(name, "data_offsets", value);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      damaged(fmt::format("tensor '{}' has the data_offsets {}", name, value.dump()));
    }
    if (offsets[1] > data_.size()) {
      damaged(fmt::format("truncated: tensor '{}' ends at byte {} of the data, the file has {}",
                          name, offsets[1], data_.size()));
    }
    const auto size = offsets[1] - offsets[0];
    if (byte_size(tensor.dtype, tensor.shape) != size) {
      damaged(fmt::format("tensor '{}' of {} {} has {} bytes", name, to_string(tensor.dtype),
                          to_string(tensor.shape), size));
    }
    extents_.push_back({offsets[0], offsets[1]});
    return aligned(data_.subspan(offsets[0], size), size_of(tensor.dtype));
  }

  ByteView aligned(ByteView data, std::size_t alignment) {
    if (reinterpret_cast<std::uintptr_t>(data.data()) % alignment == 0) return data;
    owner_->aligned.push_back(Buffer::copy_of(data));
    return owner_->aligned.back().view();
  }

  // Every byte of the data belongs to exactly one tensor.
  void check_cover() {
    std::sort(extents_.begin(), extents_.end());
    std::uint64_t end = 0;
    for (const auto& extent : extents_) {
      if (extent.begin != end) {
        damaged(fmt::format("tensors {} at byte {} of the data",
                            extent.begin < end ? "overlap" : "leave a gap",
                            std::min(extent.begin, end)));
      }
      end = extent.end;
    }
    if (end != data_.size()) {
      damaged(fmt::format("too long: the tensors end at byte {} of the data, the file has {}", end,
                          data_.size()));
    }
  }

  [[noreturn]] void damaged(const std::string& what) const {
    fail(ErrorCode::kDataLoss, "{}: not a sound safetensors file: {}", name_, what);
  }

  const std::string& name_;
  std::shared_ptr<Owner> owner_ = std::make_shared<Owner>();
  ByteView data_;
  std::vector<Extent> extents_;
};

}  // namespace

SafetensorsFile write_safetensors(std::span<const NamedTensor> tensors,
                                  const std::map<std::string, std::string>& metadata) {
  check_writable(tensors);
  const auto order = data_order(tensors);
  SafetensorsFile file;
  file.offsets.resize(tensors.size());
  std::uint64_t end = 0;
  for (const auto i : order) {
    file.offsets[i] = end;
    end += tensors[i].tensor.data.size();
  }
  auto json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[std::string(kMetadata)] = metadata;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i].tensor;
    const auto begin = file.offsets[i];
    json[tensors[i].name] = {{"dtype", kNames.at(static_cast<std::size_t>(tensor.dtype))},
                             {"shape", tensor.shape},
                             {"data_offsets", {begin, begin + tensor.data.size()}}};
  }
  file.header = make_header(json);
  file.size = file.header.size() + end;
  file.parts.push_back(file.header.view());
  for (const auto i : order) file.parts.push_back(tensors[i].tensor.data);
  for (auto& offset : file.offsets) offset += file.header.size();
  return file;
}

bool is_safetensors(ByteView bytes) {
  return bytes.size() > kLengthBytes && bytes[kLengthBytes] == std::byte{'{'};
}

NamedTensors parse_safetensors(Buffer bytes, const std::string& name) {
  return SafetensorsParser(std::move(bytes), name).run();
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path), path.string());
}

}  // namespace funcpipe
