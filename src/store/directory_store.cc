#include "store/directory_store.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "store/directory_listing.h"

namespace funcpipe {
namespace {

constexpr std::string_view kProbe = ".probe";  // no key

bool is_missing(int error_number) { return error_number == ENOENT || error_number == ENOTDIR; }

void read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const auto got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on_object(errno, "get", path);
    if (got == 0) fail(ErrorCode::kDataLoss, "{} became shorter while it was read", path);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

void DirectoryStore::check_writable() const {
  try {
    std::filesystem::create_directories(root_);
    const auto path = fmt::format("{}/{}", root_, kProbe);
    DirectoryUpload(path, {}, temporary_files_).place();
    ::unlink(path.c_str());
  } catch (const Error& error) {
    fail(ErrorCode::kFailedPrecondition, "store {} is not writable: {}", root_, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    fail(ErrorCode::kFailedPrecondition, "store {} is not writable: cannot make its folder: {}",
         root_, error.code().message());
  }
}

std::string DirectoryStore::path_of(std::string_view key) const {
  check_key(key);
  return fmt::format("{}/{}", root_, key);
}

void DirectoryStore::put(std::string_view key, std::span<const ByteView> parts) {
  DirectoryUpload(path_of(key), parts, temporary_files_).place();
}

PutResult DirectoryStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  const bool placed = DirectoryUpload(path_of(key), parts, temporary_files_).place_if_absent();
  return placed ? PutResult::kStored : PutResult::kAlreadyThere;
}

std::optional<Buffer> DirectoryStore::get(std::string_view key) {
  return get_range(key, {0, std::numeric_limits<std::uint64_t>::max()});
}

std::optional<Buffer> DirectoryStore::get_range(std::string_view key, ByteRange range) {
  const auto path = path_of(key);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && is_missing(errno)) return std::nullopt;
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) fail_on_object(errno, "get", path);
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto offset = std::min(range.offset, size);
  Buffer buffer(std::min(range.length, size - offset));
  read_at(file.get(), buffer.span(), offset, path);
  return buffer;
}

std::optional<ObjectInfo> DirectoryStore::head(std::string_view key) {
  const auto path = path_of(key);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (is_missing(errno)) return std::nullopt;
    fail_on_object(errno, "look at", path);
  }
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return ObjectInfo{std::string(key), static_cast<std::uint64_t>(status.st_size)};
}

ListPage DirectoryStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  check_prefix(prefix);
  check_limit(limit);
  return page_of(list_directory(root_, prefix, after, limit), limit);
}

bool DirectoryStore::remove(std::string_view key) {
  const auto path = path_of(key);
  if (::unlink(path.c_str()) != 0) {
    if (is_missing(errno) || errno == EISDIR) return false;
    fail_on_object(errno, "remove", path);
  }
  remove_empty_folders_of(key);
  return true;
}

// A put into such a folder makes it again.
void DirectoryStore::remove_empty_folders_of(std::string_view key) const {
  for (auto slash = key.rfind('/'); slash != key.npos; slash = key.rfind('/')) {
    key = key.substr(0, slash);
    if (::rmdir(fmt::format("{}/{}", root_, key).c_str()) != 0) return;
  }
}

}  // namespace funcpipe
