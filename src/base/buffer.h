// Owned and borrowed bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace funcpipe {

using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A move-only block of uninitialised memory aligned to 64 bytes, so that tensors can live in it
// where it is. shrink() keeps the allocation and forgets the tail.
class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(std::size_t size)
      : data_(size == 0
                  ? nullptr
                  : static_cast<std::byte*>(::operator new(size, std::align_val_t(kAlignment)))),
        size_(size) {}
  static Buffer copy_of(ByteView bytes) {
    Buffer buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return buffer;
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void shrink(std::size_t size) { size_ = size < size_ ? size : size_; }

  std::span<std::byte> span() { return {data_.get(), size_}; }
  ByteView view() const { return {data_.get(), size_}; }
  std::string_view text() const { return as_text(view()); }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t(kAlignment));
    }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace funcpipe
