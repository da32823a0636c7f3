#include "store/counting_store.h"

namespace funcpipe {

void CountingStore::put(std::string_view key, std::span<const ByteView> parts) {
  counter_.add({.puts = 1, .bytes_up = total_size(parts)});
  base_.put(key, parts);
}

PutResult CountingStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  counter_.add({.puts = 1, .bytes_up = total_size(parts)});
  return base_.put_if_absent(key, parts);
}

std::optional<Buffer> CountingStore::counted(std::optional<Buffer> object) {
  if (object) {
    counter_.add({.bytes_down = object->size()});
  } else {
    counter_.add({.misses = 1});
  }
  return object;
}

std::optional<Buffer> CountingStore::get(std::string_view key) {
  counter_.add({.gets = 1});
  return counted(base_.get(key));
}

std::optional<Buffer> CountingStore::get_range(std::string_view key, ByteRange range) {
  counter_.add({.gets = 1});
  return counted(base_.get_range(key, range));
}

std::optional<ObjectInfo> CountingStore::head(std::string_view key) {
  counter_.add({.heads = 1});
  return base_.head(key);
}

ListPage CountingStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  counter_.add({.lists = 1});
  return base_.list(prefix, after, limit);
}

bool CountingStore::remove(std::string_view key) {
  counter_.add({.removes = 1});
  return base_.remove(key);
}

}  // namespace funcpipe
