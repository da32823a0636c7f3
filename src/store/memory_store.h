// Objects in the memory of this process: for tests, and for runs that live in one process.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "store/object_store.h"

namespace funcpipe {

// Thread-safe. Bytes are copied in and out without holding a lock. Its objects end with it.
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
  // Shared by the map and by the readers that are copying from it when it is replaced.
  using Object = std::shared_ptr<const Buffer>;
  struct Shard {
    std::mutex mutex;
    std::map<std::string, Object, std::less<>> objects;
  };

  Shard& shard_of(std::string_view key);
  Object find(std::string_view key);  // null: no such object

  std::array<Shard, 16> shards_;
};

}  // namespace funcpipe
