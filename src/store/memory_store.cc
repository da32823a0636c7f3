#include "store/memory_store.h"

#include <algorithm>
#include <cstring>

namespace funcpipe {
namespace {

Buffer joined(std::span<const ByteView> parts) {
  Buffer buffer(total_size(parts));
  auto* end = buffer.data();
  for (const auto part : parts) end = std::copy(part.begin(), part.end(), end);
  return buffer;
}

}  // namespace

MemoryStore::Shard& MemoryStore::shard_of(std::string_view key) {
  return shards_[std::hash<std::string_view>{}(key) % shards_.size()];
}

MemoryStore::Object MemoryStore::find(std::string_view key) {
  check_key(key);
  auto& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.objects.find(key);
  return found == shard.objects.end() ? nullptr : found->second;
}

void MemoryStore::put(std::string_view key, std::span<const ByteView> parts) {
  check_key(key);
  auto object = std::make_shared<const Buffer>(joined(parts));
  auto& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  // The old object, if any, is freed by `object`'s destructor after the lock is released.
  const auto found = shard.objects.find(key);
  if (found == shard.objects.end()) {
    shard.objects.emplace(key, std::move(object));
  } else {
    found->second.swap(object);
  }
}

PutResult MemoryStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  if (find(key)) return PutResult::kAlreadyThere;
  auto object = std::make_shared<const Buffer>(joined(parts));
  auto& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const bool stored = shard.objects.try_emplace(std::string(key), std::move(object)).second;
  return stored ? PutResult::kStored : PutResult::kAlreadyThere;
}

std::optional<Buffer> MemoryStore::get(std::string_view key) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  return Buffer::copy_of(object->view());
}

std::optional<Buffer> MemoryStore::get_range(std::string_view key, ByteRange range) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  const auto rest = object->view().subspan(std::min<std::uint64_t>(range.offset, object->size()));
  return Buffer::copy_of(rest.first(std::min<std::uint64_t>(range.length, rest.size())));
}

std::optional<ObjectInfo> MemoryStore::head(std::string_view key) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  return ObjectInfo{std::string(key), object->size()};
}

ListPage MemoryStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  check_prefix(prefix);
  check_limit(limit);
  std::vector<ObjectInfo> objects;
  for (auto& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    auto entry =
        after < prefix ? shard.objects.lower_bound(prefix) : shard.objects.upper_bound(after);
    // One more than asked for, so as to know whether more follow.
    for (std::size_t i = 0; i <= limit; ++i, ++entry) {
      if (entry == shard.objects.end() || !entry->first.starts_with(prefix)) break;
      objects.push_back({entry->first, entry->second->size()});
    }
  }
  std::sort(objects.begin(), objects.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.key < b.key; });
  return page_of(std::move(objects), limit);
}

bool MemoryStore::remove(std::string_view key) {
  check_key(key);
  Object removed;  // freed after the lock is released
  auto& shard = shard_of(key);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.objects.find(key);
  if (found == shard.objects.end()) return false;
  removed = std::move(found->second);
  shard.objects.erase(found);
  return true;
}

}  // namespace funcpipe
