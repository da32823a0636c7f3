#include "store/open_store.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "store/directory_store.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

bool is_scheme_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '-';
}

// "s3" of "s3://bucket/x"; empty for a path.
std::string_view scheme_of(std::string_view url) {
  const auto scheme = url.substr(0, url.find(':'));
  const bool valid =
      scheme.size() < url.size() && std::all_of(scheme.begin(), scheme.end(), is_scheme_character);
  return valid ? scheme : std::string_view();
}

std::filesystem::path path_of_file_url(std::string_view url) {
  constexpr std::string_view kPrefix = "file://";
  if (!url.starts_with("file:///")) {
    fail(ErrorCode::kInvalidArgument, "store '{}': write file:///absolute/path", url);
  }
  return url.substr(kPrefix.size());
}

std::unique_ptr<ObjectStore> open_directory(const std::filesystem::path& path, OpenMode mode) {
  std::error_code ignored;
  if (mode == OpenMode::kExisting && !std::filesystem::is_directory(path, ignored)) {
    fail(ErrorCode::kNotFound, "there is no folder {}", path.string());
  }
  auto store = std::make_unique<DirectoryStore>(path);
  if (mode == OpenMode::kCreate) store->check_writable();
  return store;
}

}  // namespace

std::unique_ptr<ObjectStore> open_store(std::string_view url, OpenMode mode) {
  if (url.empty()) fail(ErrorCode::kInvalidArgument, "the store's URL is empty");
  if (url == "memory:") return std::make_unique<MemoryStore>();
  const auto scheme = scheme_of(url);
  if (scheme.empty()) return open_directory(url, mode);
  if (scheme == "file") return open_directory(path_of_file_url(url), mode);
  fail(ErrorCode::kUnimplemented,
       "store '{}' is of a kind that is not known; known are: a path, file:///absolute/path, "
       "memory:",
       url);
}

}  // namespace funcpipe
