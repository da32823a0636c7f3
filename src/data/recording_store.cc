#include "data/recording_store.h"

#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace funcpipe::testing {

RecordingStore::RecordingStore() : ForwardingStore(std::make_unique<MemoryStore>()) {}

void RecordingStore::put(std::string_view key, std::span<const ByteView> parts) {
  record(fmt::format("put {}", key));
  base_.put(key, parts);
}

std::optional<Buffer> RecordingStore::get(std::string_view key) {
  record(fmt::format("get {}", key));
  return base_.get(key);
}

std::optional<Buffer> RecordingStore::get_range(std::string_view key, ByteRange range) {
  record(fmt::format("get_range {} {}+{}", key, range.offset, range.length));
  return base_.get_range(key, range);
}

std::vector<std::string> RecordingStore::take_log() {
  const std::lock_guard lock(mutex_);
  return std::exchange(log_, {});
}

std::vector<std::string> RecordingStore::keys() {
  std::vector<std::string> keys;
  for (auto& object : list_all(base_, "")) keys.push_back(std::move(object.key));
  return keys;
}

std::string RecordingStore::key_with(std::string_view part) {
  std::vector<std::string> matches;
  for (auto& key : keys()) {
    if (key.find(part) != std::string::npos) matches.push_back(std::move(key));
  }
  EXPECT_EQ(matches.size(), 1U) << part;
  return matches.at(0);
}

std::string RecordingStore::object(const std::string& key) {
  return std::string(base_.get(key).value().text());
}

void RecordingStore::set_object(const std::string& key, std::string_view content) {
  funcpipe::put(base_, key, as_bytes(content));
}

void RecordingStore::record(std::string entry) {
  const std::lock_guard lock(mutex_);
  log_.push_back(std::move(entry));
}

}  // namespace funcpipe::testing
