// An object store in a folder of a local disk, shared by any number of processes.
//
// An object is a file. It is written under a temporary name and appears at once: put by rename,
// put_if_absent by link, of which exactly one succeeds. Nothing is synced to disk: objects survive
// the death of processes, not the loss of power.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "store/object_store.h"

namespace funcpipe {

class DirectoryStore : public ObjectStore {
 public:
  // Does not touch the disk yet: a folder that is only read need not be writable.
  explicit DirectoryStore(std::filesystem::path root) : root_(std::move(root)) {}
  // Makes the folder if need be. Throws Error(kFailedPrecondition) naming it when it cannot be
  // written to.
  void check_writable();

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  // Also removes folders that became empty.
  bool remove(std::string_view key) override;

 private:
  class TemporaryFile;

  std::filesystem::path path_of(std::string_view key) const;
  std::optional<Buffer> read(std::string_view key, ByteRange range);

  const std::filesystem::path root_;
  std::atomic<std::uint64_t> next_temporary_{0};
};

}  // namespace funcpipe
