#include "store/counting_store.h"

namespace funcpipe {

void CountingStore::count_put(std::span<const ByteView> parts) {
  StoreUsage usage;
  usage.puts = 1;
  usage.bytes_up = total_size(parts);
  counter_.add(usage);
}

std::optional<Buffer> CountingStore::count_get(std::optional<Buffer> object) {
  StoreUsage usage;
  usage.gets = 1;
  usage.misses = object ? 0 : 1;
  usage.bytes_down = object ? object->size() : 0;
  counter_.add(usage);
  return object;
}

// Attempts count, whatever becomes of them: they are billed.
void CountingStore::put(std::string_view key, std::span<const ByteView> parts) {
  count_put(parts);
  base_.put(key, parts);
}

PutResult CountingStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  count_put(parts);
  return base_.put_if_absent(key, parts);
}

std::optional<Buffer> CountingStore::get(std::string_view key) { return count_get(base_.get(key)); }

std::optional<Buffer> CountingStore::get_range(std::string_view key, ByteRange range) {
  return count_get(base_.get_range(key, range));
}

std::optional<ObjectInfo> CountingStore::head(std::string_view key) {
  StoreUsage usage;
  usage.heads = 1;
  counter_.add(usage);
  return base_.head(key);
}

ListPage CountingStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  StoreUsage usage;
  usage.lists = 1;
  counter_.add(usage);
  return base_.list(prefix, after, limit);
}

bool CountingStore::remove(std::string_view key) {
  StoreUsage usage;
  usage.removes = 1;
  counter_.add(usage);
  return base_.remove(key);
}

}  // namespace funcpipe
