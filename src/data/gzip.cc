#include "data/gzip.h"

#include <algorithm>
#include <cstdint>

#include <zlib.h>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr int kGzipWindowBits = 15 + 16;
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr std::size_t kMostRatio = 1032;                    // of deflate

// One gzip stream being inflated into a buffer that grows.
class Inflater {
 public:
  Inflater(ByteView input, const std::string& name)
      : input_(input), name_(name), output_(first_guess(input)) {
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) {
      fail(ErrorCode::kResourceExhausted, "{}: no memory to decompress", name_);
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Buffer run() {
    do {
      inflate_member();
      inflateReset(&stream_);
    } while (is_gzip(input_));
    if (!input_.empty()) {
      fail(ErrorCode::kDataLoss, "{}: {} bytes that are not gzip follow the compressed data", name_,
           input_.size());
    }
    output_.shrink(used_);
    return std::move(output_);
  }

 private:
  // The last four bytes of a file of one member are its content's size, modulo 2^32.
  static std::size_t first_guess(ByteView input) {
    std::uint32_t size = 0;
    if (input.size() >= sizeof size) {
      std::memcpy(&size, input.data() + input.size() - sizeof size, sizeof size);
    }
    return std::clamp<std::size_t>(size, 1, std::max<std::size_t>(1, input.size() * kMostRatio)) +
           1;  // the spare byte lets inflate see the end without growing
  }

  void inflate_member() {
    for (int status = Z_OK; status != Z_STREAM_END;) {
      if (used_ == output_.size()) grow();
      status = step();
      if (status == Z_OK || status == Z_STREAM_END) continue;
      if (status == Z_BUF_ERROR && input_.empty()) {
        fail(ErrorCode::kDataLoss, "{}: gzip data are truncated after {} bytes of content", name_,
             used_);
      }
      fail(ErrorCode::kDataLoss, "{}: gzip data are damaged ({})", name_,
           stream_.msg != nullptr ? stream_.msg : "unknown cause");
    }
  }

  int step() {
    const auto in = std::min(input_.size(), kMostPerCall);
    const auto room = std::min(output_.size() - used_, kMostPerCall);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(output_.data() + used_);
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input_ = input_.subspan(in - stream_.avail_in);
    used_ += room - stream_.avail_out;
    return status;
  }

  void grow() {
    Buffer larger(output_.size() * 2);
    std::memcpy(larger.data(), output_.data(), used_);
    output_ = std::move(larger);
  }

  ByteView input_;
  const std::string& name_;
  Buffer output_;
  std::size_t used_ = 0;
  z_stream stream_{};
};

}  // namespace

bool is_gzip(ByteView bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

Buffer gunzip(ByteView bytes, const std::string& name) { return Inflater(bytes, name).run(); }

}  // namespace funcpipe
