// What the tests of this folder share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "store/object_store.h"

namespace funcpipe::testing {

inline void put_text(ObjectStore& store, std::string_view key, std::string_view text) {
  put(store, key, as_bytes(text));
}

// "(nothing)" for a missing object.
inline std::string text_of(const std::optional<Buffer>& object) {
  return object ? std::string(object->text()) : "(nothing)";
}

inline std::string get_text(ObjectStore& store, std::string_view key) {
  return text_of(store.get(key));
}

inline std::vector<std::string> keys_of(const std::vector<ObjectInfo>& objects) {
  std::vector<std::string> keys;
  for (const auto& object : objects) keys.push_back(object.key);
  return keys;
}

inline Buffer random_bytes(std::size_t size, std::uint64_t seed) {
  Buffer buffer(size);
  Rng rng(seed);
  for (auto& byte : buffer.span()) byte = static_cast<std::byte>(rng());
  return buffer;
}

}  // namespace funcpipe::testing
