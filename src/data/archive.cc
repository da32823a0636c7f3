#include "data/archive.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <archive.h>
#include <archive_entry.h>

#include "base/error.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kReadBlock = 256 * 1024;
constexpr std::uint64_t kMostTrustedSize = 64 * 1024 * 1024;

std::string text_of(archive* handle) {
  const char* text = archive_error_string(handle);
  return text != nullptr ? text : "unknown cause";
}

// An archive open for reading, member by member.
class ArchiveReader {
 public:
  explicit ArchiveReader(const fs::path& path) : path_(path), archive_(archive_read_new()) {
    auto* handle = archive_.get();
    archive_read_support_filter_gzip(handle);
    archive_read_support_filter_bzip2(handle);
    archive_read_support_filter_xz(handle);
    archive_read_support_filter_zstd(handle);
    archive_read_support_format_tar(handle);
    archive_read_support_format_zip(handle);
    if (!fs::exists(path)) fail(ErrorCode::kNotFound, "{}: no such file", path.string());
    if (archive_read_open_filename(handle, path.c_str(), kReadBlock) != ARCHIVE_OK) {
      fail(ErrorCode::kInvalidArgument, "{}: cannot be read as an archive: {}", path.string(),
           text_of(handle));
    }
  }

  // Moves to the next regular file. False at the end.
  bool next() {
    while (true) {
      const int status = archive_read_next_header(archive_.get(), &entry_);
      if (status == ARCHIVE_EOF) return false;
      if (status < ARCHIVE_WARN) reject();
      ++entries_;
      if (archive_entry_filetype(entry_) == AE_IFREG) return true;
    }
  }

  std::string name() const {
    const char* text = archive_entry_pathname(entry_);
    if (text == nullptr) text = archive_entry_pathname_utf8(entry_);
    std::string name = text != nullptr ? text : "";
    return name.starts_with("./") ? name.substr(2) : name;
  }

  // The size in the member's header is a hint only.
  Buffer data() {
    const auto claimed =
        static_cast<std::uint64_t>(std::max<la_int64_t>(archive_entry_size(entry_), 0));
    Buffer buffer(std::min(claimed, kMostTrustedSize) + 1);  // one spare byte: see the end in place
    std::size_t used = 0;
    while (true) {
      if (used == buffer.size()) {
        Buffer larger(2 * buffer.size());
        std::memcpy(larger.data(), buffer.data(), used);
        buffer = std::move(larger);
      }
      const auto got =
          archive_read_data(archive_.get(), buffer.data() + used, buffer.size() - used);
      if (got < 0) reject_member();
      if (got == 0) break;
      used += static_cast<std::size_t>(got);
    }
    buffer.shrink(used);
    return buffer;
  }

 private:
  [[noreturn]] void reject() {
    if (entries_ == 0) {
      fail(ErrorCode::kInvalidArgument, "{}: not a .tar, .tar.gz, .tgz or .zip archive ({})",
           path_.string(), text_of(archive_.get()));
    }
    fail(ErrorCode::kDataLoss, "{}: the archive is damaged or truncated after {} entries ({})",
         path_.string(), entries_, text_of(archive_.get()));
  }
  [[noreturn]] void reject_member() {
    fail(ErrorCode::kDataLoss,
         "{}: member '{}' cannot be read, the archive is damaged or truncated ({})", path_.string(),
         name(), text_of(archive_.get()));
  }

  struct Free {
    void operator()(archive* handle) const { archive_read_free(handle); }
  };
  const fs::path path_;
  std::unique_ptr<archive, Free> archive_;
  archive_entry* entry_ = nullptr;
  int entries_ = 0;
};

}  // namespace

bool is_archive(const fs::path& path) {
  if (!fs::is_regular_file(path)) return false;
  try {
    return ArchiveReader(path).next();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kDataLoss;
  }
}

std::vector<std::string> list_archive(const fs::path& path) {
  std::vector<std::string> names;
  for (ArchiveReader reader(path); reader.next();) names.push_back(reader.name());
  return names;
}

std::vector<ArchiveMember> read_archive(
    const fs::path& path, const std::function<bool(const std::string& name)>& wanted) {
  std::vector<ArchiveMember> members;
  for (ArchiveReader reader(path); reader.next();) {
    auto name = reader.name();
    if (wanted(name)) members.push_back({std::move(name), reader.data()});
  }
  return members;
}

}  // namespace funcpipe
