// An object store in this process's memory, for tests and for a single process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/object_store.h"

namespace funcpipe {

class MemoryStore : public ObjectStore {
 public:
  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  using Object = std::shared_ptr<const Buffer>;  // shared: readers copy from it without the lock
  Object find(std::string_view key) const;

  mutable std::mutex mutex_;
  std::map<std::string, Object, std::less<>> objects_;
};

}  // namespace funcpipe
