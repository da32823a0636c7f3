// A store in memory for this folder's tests: it remembers the requests and lets a test damage
// objects.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "store/object_store.h"

namespace funcpipe::testing {

class FakeStore : public ObjectStore {
 public:
  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

  // "get a/index.json", "get_range a/shard 128+784", "put ...", "remove ...": since the last call.
  std::vector<std::string> take_log();
  std::vector<std::string> keys() const;
  // The only key that contains `part`.
  std::string key_with(std::string_view part) const;
  std::string object(const std::string& key) const;
  void set_object(const std::string& key, std::string content);

 private:
  void log(std::string entry);
  mutable std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> objects_;
  std::vector<std::string> log_;
};

}  // namespace funcpipe::testing
