// A store in memory for this folder's tests: it remembers the requests and lets a test damage
// objects.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "store/forwarding_store.h"

namespace funcpipe::testing {

class RecordingStore : public ForwardingStore {
 public:
  RecordingStore();

  void put(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;

  // "put a/b", "get a/index.json", "get_range a/shard 128+784": since the last call.
  std::vector<std::string> take_log();

  // Not recorded.
  std::vector<std::string> keys();
  std::string key_with(std::string_view part);  // the only key that contains `part`
  std::string object(const std::string& key);
  void set_object(const std::string& key, std::string_view content);

 private:
  void record(std::string entry);

  std::mutex mutex_;
  std::vector<std::string> log_;
};

}  // namespace funcpipe::testing
