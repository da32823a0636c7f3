#include "base/file.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

// Distinct among all threads and processes of this machine.
fs::path temporary_name(const fs::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.parent_path() /
         fmt::format(".{}.{}.{}.tmp", path.filename().string(), ::getpid(), counter++);
}

void make_parent(const fs::path& path) {
  if (!path.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    throw error_from_errno(error.value(),
                           fmt::format("cannot make folder {}", path.parent_path().string()));
}

}  // namespace

Buffer read_file(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw error_from_errno(errno, fmt::format("cannot open {}", path.string()));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0)
    throw error_from_errno(errno, fmt::format("cannot read {}", path.string()));
  if (S_ISDIR(status.st_mode))
    throw error_from_errno(EISDIR, fmt::format("cannot read {}", path.string()));
  Buffer buffer(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < buffer.size()) {
    const auto got = ::read(file.get(), buffer.data() + done, buffer.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw error_from_errno(errno, fmt::format("cannot read {}", path.string()));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  buffer.shrink(done);
  return buffer;
}

std::string read_text_file(const fs::path& path) { return std::string(read_file(path).text()); }

void write_all(int fd, std::span<const ByteView> parts, const fs::path& path) {
  for (auto part : parts) {
    while (!part.empty()) {
      const auto written = ::write(fd, part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw error_from_errno(errno, fmt::format("cannot write {}", path.string()));
      part = part.subspan(static_cast<std::size_t>(written));
    }
  }
}

void write_file(const fs::path& path, std::span<const ByteView> parts) {
  make_parent(path);
  const fs::path temporary = temporary_name(path);
  try {
    FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file) throw error_from_errno(errno, fmt::format("cannot write {}", path.string()));
    write_all(file.get(), parts, path);
    if (::close(file.release()) != 0)
      throw error_from_errno(errno, fmt::format("cannot write {}", path.string()));
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw error_from_errno(errno, fmt::format("cannot write {}", path.string()));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file(const fs::path& path, ByteView bytes) { write_file(path, std::span(&bytes, 1)); }

void write_file(const fs::path& path, std::string_view text) { write_file(path, as_bytes(text)); }

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (fs::temp_directory_path() / "funcpipe-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw error_from_errno(errno, "cannot make a temporary folder");
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

FileDescriptor::~FileDescriptor() { reset(); }

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(release());
}

}  // namespace funcpipe
