#include "store/memory_store.h"

#include <algorithm>
#include <cstring>

namespace funcpipe {
namespace {

std::shared_ptr<const Buffer> join(std::span<const ByteView> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  auto buffer = std::make_shared<Buffer>(size);
  std::size_t at = 0;
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(buffer->data() + at, part.data(), part.size());
    at += part.size();
  }
  return buffer;
}

}  // namespace

MemoryStore::Object MemoryStore::find(std::string_view key) const {
  check_key(key);
  std::lock_guard lock(mutex_);
  const auto entry = objects_.find(key);
  return entry == objects_.end() ? nullptr : entry->second;
}

void MemoryStore::put(std::string_view key, std::span<const ByteView> parts) {
  check_key(key);
  auto object = join(parts);
  std::lock_guard lock(mutex_);
  objects_.insert_or_assign(std::string(key), std::move(object));
}

PutResult MemoryStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  check_key(key);
  auto object = join(parts);
  std::lock_guard lock(mutex_);
  return objects_.emplace(std::string(key), std::move(object)).second ? PutResult::kStored
                                                                      : PutResult::kAlreadyThere;
}

std::optional<Buffer> MemoryStore::get(std::string_view key) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  return Buffer::copy_of(object->view());
}

std::optional<Buffer> MemoryStore::get_range(std::string_view key, ByteRange range) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  const auto offset = std::min<std::uint64_t>(range.offset, object->size());
  return Buffer::copy_of(object->view().subspan(
      offset, std::min<std::uint64_t>(range.length, object->size() - offset)));
}

std::optional<ObjectInfo> MemoryStore::head(std::string_view key) {
  const auto object = find(key);
  if (!object) return std::nullopt;
  return ObjectInfo{std::string(key), object->size()};
}

ListPage MemoryStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  std::lock_guard lock(mutex_);
  ListPage page;
  auto entry = after < prefix ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
  for (; entry != objects_.end() && entry->first.starts_with(prefix); ++entry) {
    if (page.objects.size() == limit) {
      if (limit > 0) page.next = page.objects.back().key;
      break;
    }
    page.objects.push_back({entry->first, entry->second->size()});
  }
  return page;
}

bool MemoryStore::remove(std::string_view key) {
  check_key(key);
  std::lock_guard lock(mutex_);
  const auto entry = objects_.find(key);
  if (entry == objects_.end()) return false;
  objects_.erase(entry);
  return true;
}

}  // namespace funcpipe
