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

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kTemporaryFolder =
    ".tmp";                  // inside the root, so on the same file system
constexpr int kTries = 100;  // of making a folder that another process removes at the same time

[[noreturn]] void fail_errno(int error_number, const fs::path& path, std::string_view what) {
  if (error_number == ENOSPC || error_number == EDQUOT) {
    fail(ErrorCode::kResourceExhausted, "{} {}: no space left on the disk", what, path.string());
  }
  throw error_from_errno(error_number, fmt::format("{} {}", what, path.string()));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_errno(error.value(), folder, "cannot make folder");
}

// Entries of a folder in key order. A folder sorts as its name with '/', which is where its keys
// lie among its siblings'.
std::vector<std::pair<std::string, fs::file_type>> sorted_entries(const fs::path& folder) {
  std::vector<std::pair<std::string, fs::file_type>> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const auto type = entry->status(ignored).type();
    auto name = entry->path().filename().string();
    if (type == fs::file_type::directory) name += '/';
    entries.emplace_back(std::move(name), type);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Adds objects below `folder` (with key prefix `at`) to `page` until it has more than `limit`.
void collect(const fs::path& folder, const std::string& at, std::string_view prefix,
             std::string_view after, std::size_t limit, std::vector<ObjectInfo>& found) {
  for (const auto& [name, type] : sorted_entries(folder)) {
    if (found.size() > limit) return;
    const auto key = at + name;
    if (at.empty() && name == fmt::format("{}/", kTemporaryFolder)) continue;
    if (type == fs::file_type::directory) {
      const auto shared = std::min(key.size(), prefix.size());
      if (key.compare(0, shared, prefix.substr(0, shared)) != 0) continue;
      // All keys below begin with `key`; they are all at or before `after` when `after` is beyond
      // that run of keys.
      if (std::string_view(key) < after.substr(0, key.size())) continue;
      collect(folder / name, key, prefix, after, limit, found);
    } else if (type == fs::file_type::regular && key.starts_with(prefix) && key > after) {
      std::error_code error;
      const auto size = fs::file_size(folder / name, error);
      if (!error) found.push_back({key, size});
    }
  }
}

}  // namespace

// A file under a temporary name, gone at the end of its life unless it was published.
class DirectoryStore::TemporaryFile {
 public:
  TemporaryFile(const fs::path& root, std::uint64_t number, std::span<const ByteView> parts)
      : path_(root / kTemporaryFolder / fmt::format("{}-{}", ::getpid(), number)) {
    FileDescriptor file(open());
    if (!file && errno == ENOENT) {
      make_folder(path_.parent_path());
      file = FileDescriptor(open());
    }
    if (!file) fail_errno(errno, root, "cannot write to the store");
    try {
      write_all(file.get(), parts, root);
      if (::close(file.release()) != 0) fail_errno(errno, root, "cannot write to the store");
    } catch (...) {
      ::unlink(path_.c_str());
      throw;
    }
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // `publish(from, to)` gives 0 or an errno. Makes the target's folder when it is missing.
  template <typename Publish>
  int publish(const fs::path& target, Publish publish) const {
    for (int i = 0; i < kTries; ++i) {
      const int error = publish(path_.c_str(), target.c_str());
      if (error != ENOENT) return error;
      make_folder(target.parent_path());
    }
    return EAGAIN;
  }

 private:
  int open() const { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644); }
  const fs::path path_;
};

void DirectoryStore::check_writable() {
  try {
    make_folder(root_ / kTemporaryFolder);
    const TemporaryFile probe(root_, next_temporary_++, {});
  } catch (const Error& error) {
    fail(ErrorCode::kFailedPrecondition, "store {} is not writable: {}", root_.string(),
         error.what());
  }
}

fs::path DirectoryStore::path_of(std::string_view key) const {
  check_key(key);
  if (key == kTemporaryFolder || key.starts_with(".tmp/")) {
    fail(ErrorCode::kInvalidArgument, "'{}' is not a key of this store: '.tmp' is its own", key);
  }
  return root_ / key;
}

void DirectoryStore::put(std::string_view key, std::span<const ByteView> parts) {
  const auto path = path_of(key);
  const TemporaryFile file(root_, next_temporary_++, parts);
  const int error = file.publish(
      path, [](const char* from, const char* to) { return ::rename(from, to) == 0 ? 0 : errno; });
  if (error != 0) fail_errno(error, path, "cannot put");
}

PutResult DirectoryStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  const auto path = path_of(key);
  const TemporaryFile file(root_, next_temporary_++, parts);
  const int error = file.publish(path, [](const char* from, const char* to) {
    if (::link(from, to) == 0) return 0;
    if (errno != EPERM && errno != EOPNOTSUPP) return errno;
    return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ? 0 : errno;
  });
  if (error == EEXIST) return PutResult::kAlreadyThere;
  if (error != 0) fail_errno(error, path, "cannot put");
  return PutResult::kStored;
}

std::optional<Buffer> DirectoryStore::read(std::string_view key, ByteRange range) {
  const auto path = path_of(key);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail_errno(errno, path, "cannot get");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_errno(errno, path, "cannot get");
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto offset = std::min(range.offset, size);
  Buffer buffer(std::min(range.length, size - offset));
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto got = ::pread(file.get(), buffer.data() + done, buffer.size() - done,
                             static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(errno, path, "cannot get");
    if (got == 0) fail(ErrorCode::kDataLoss, "{} became shorter while it was read", path.string());
    done += static_cast<std::size_t>(got);
  }
  return buffer;
}

std::optional<Buffer> DirectoryStore::get(std::string_view key) {
  return read(key, {0, std::numeric_limits<std::uint64_t>::max()});
}

std::optional<Buffer> DirectoryStore::get_range(std::string_view key, ByteRange range) {
  return read(key, range);
}

std::optional<ObjectInfo> DirectoryStore::head(std::string_view key) {
  const auto path = path_of(key);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail_errno(errno, path, "cannot look at");
  }
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  return ObjectInfo{std::string(key), static_cast<std::uint64_t>(status.st_size)};
}

ListPage DirectoryStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  ListPage page;
  collect(root_, "", prefix, after, limit, page.objects);
  if (page.objects.size() > limit) {
    page.objects.resize(limit);
    if (limit > 0) page.next = page.objects.back().key;
  }
  return page;
}

bool DirectoryStore::remove(std::string_view key) {
  const auto path = path_of(key);
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EISDIR) return false;
    fail_errno(errno, path, "cannot remove");
  }
  for (auto folder = path.parent_path(); folder != root_; folder = folder.parent_path()) {
    if (::rmdir(folder.c_str()) != 0) break;
  }
  return true;
}

}  // namespace funcpipe
