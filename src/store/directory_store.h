// An object store in a folder of a local disk, shared by any number of processes.
//
// An object is a file, its key the path below the root. It is written where nobody sees it and
// appears at once: put by rename, put_if_absent by link, of which exactly one succeeds (see
// DirectoryUpload). Nothing is synced to disk: objects survive the death of processes, not the loss
// of power. A key that is another one's folder is refused. Files whose path is not a key, such as
// those beginning with '.', are not seen.
#pragma once

#include <filesystem>
#include <string>

#include "store/directory_upload.h"
#include "store/object_store.h"

namespace funcpipe {

class DirectoryStore : public ObjectStore {
 public:
  // Does not touch the disk yet: a folder that is only read need not be writable.
  explicit DirectoryStore(const std::filesystem::path& root,
                          TemporaryFiles temporary_files = TemporaryFiles::kNameless)
      : root_(root.string()), temporary_files_(temporary_files) {}
  // Makes the folder if need be. Throws Error(kFailedPrecondition) naming it when it cannot be
  // written to.
  void check_writable() const;

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  // Also removes folders that became empty.
  bool remove(std::string_view key) override;

 private:
  std::string path_of(std::string_view key) const;
  void remove_empty_folders_of(std::string_view key) const;

  const std::string root_;
  const TemporaryFiles temporary_files_;
};

}  // namespace funcpipe
