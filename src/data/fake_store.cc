#include "data/fake_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace funcpipe::testing {

void FakeStore::put(std::string_view key, std::span<const ByteView> parts) {
  std::string content;
  for (const auto part : parts) content += as_text(part);
  const std::lock_guard lock(mutex_);
  log(fmt::format("put {}", key));
  objects_.insert_or_assign(std::string(key), std::move(content));
}

PutResult FakeStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  if (head(key)) return PutResult::kAlreadyThere;
  put(key, parts);
  return PutResult::kStored;
}

std::optional<Buffer> FakeStore::get(std::string_view key) {
  const std::lock_guard lock(mutex_);
  log(fmt::format("get {}", key));
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return Buffer::copy_of(as_bytes(found->second));
}

std::optional<Buffer> FakeStore::get_range(std::string_view key, ByteRange range) {
  const std::lock_guard lock(mutex_);
  log(fmt::format("get_range {} {}+{}", key, range.offset, range.length));
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  const auto offset = std::min<std::uint64_t>(range.offset, found->second.size());
  return Buffer::copy_of(as_bytes(std::string_view(found->second).substr(offset, range.length)));
}

std::optional<ObjectInfo> FakeStore::head(std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return ObjectInfo{found->first, found->second.size()};
}

ListPage FakeStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  ListPage page;
  for (const auto& [key, content] : objects_) {
    if (!key.starts_with(prefix) || key <= after) continue;
    if (page.objects.size() == limit) {
      page.next = page.objects.back().key;
      break;
    }
    page.objects.push_back({key, content.size()});
  }
  return page;
}

bool FakeStore::remove(std::string_view key) {
  const std::lock_guard lock(mutex_);
  log(fmt::format("remove {}", key));
  const auto found = objects_.find(key);
  if (found == objects_.end()) return false;
  objects_.erase(found);
  return true;
}

std::vector<std::string> FakeStore::take_log() {
  const std::lock_guard lock(mutex_);
  return std::exchange(log_, {});
}

std::vector<std::string> FakeStore::keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, content] : objects_) keys.push_back(key);
  return keys;
}

std::string FakeStore::key_with(std::string_view part) const {
  std::vector<std::string> matches;
  for (auto& key : keys()) {
    if (key.find(part) != std::string::npos) matches.push_back(std::move(key));
  }
  EXPECT_EQ(matches.size(), 1U) << part;
  return matches.at(0);
}

std::string FakeStore::object(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return objects_.at(key);
}

void FakeStore::set_object(const std::string& key, std::string content) {
  const std::lock_guard lock(mutex_);
  objects_.insert_or_assign(key, std::move(content));
}

void FakeStore::log(std::string entry) { log_.push_back(std::move(entry)); }

}  // namespace funcpipe::testing
