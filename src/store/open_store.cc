#include "store/open_store.h"

#include <filesystem>

#include "base/error.h"
#include "store/directory_store.h"

namespace funcpipe {

std::unique_ptr<ObjectStore> open_store(const std::string& url, OpenMode mode) {
  constexpr std::string_view kFile = "file://";
  std::filesystem::path path = url;
  if (url.starts_with(kFile)) {
    path = url.substr(kFile.size());
    if (!path.is_absolute())
      fail(ErrorCode::kInvalidArgument, "'{}': write file:///absolute/path", url);
  } else if (url.find("://") != std::string::npos) {
    fail(ErrorCode::kInvalidArgument,
         "'{}' is not a known kind of store; known are folders: PATH or file:///absolute/path",
         url);
  }
  if (url.empty()) fail(ErrorCode::kInvalidArgument, "the store's URL is empty");
  if (mode == OpenMode::kExisting && !std::filesystem::is_directory(path)) {
    fail(ErrorCode::kNotFound, "there is no folder {}", path.string());
  }
  auto store = std::make_unique<DirectoryStore>(path);
  if (mode == OpenMode::kCreate) store->check_writable();
  return store;
}

}  // namespace funcpipe
