#include "base/file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

// Random, so that it is distinct among threads, processes, containers that share a folder, and what
// a killed process has left.
fs::path temporary_name(const fs::path& path) {
  std::random_device random;
  return path.parent_path() /
         fmt::format(".{}.{:08x}{:08x}.tmp", path.filename().string(), random(), random());
}

[[noreturn]] void fail_with_errno(std::string_view action, const fs::path& path) {
  throw error_from_errno(errno, fmt::format("cannot {} {}", action, path.string()));
}

void make_parent(const fs::path& path) {
  if (!path.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  errno = error.value();
  if (error) fail_with_errno("make folder", path.parent_path());
}

// Fills `bytes` as far as the file goes; gives the number of bytes read.
std::size_t read_up_to(int fd, std::span<std::byte> bytes, const fs::path& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with_errno("read", path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Buffer joined(const Buffer& front, ByteView back, std::size_t size) {
  Buffer buffer(size);
  std::copy_n(front.data(), front.size(), buffer.data());
  std::copy(back.begin(), back.end(), buffer.data() + front.size());
  return buffer;
}

}  // namespace

// A regular file is read into a buffer of its size; what is longer than it says (pipes, /proc) is
// found out by reading a little more, and the buffer grown.
Buffer read_file(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_with_errno("open", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail_with_errno("read", path);
  Buffer buffer(S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) : 0);
  std::size_t size = read_up_to(file.get(), buffer.span(), path);
  while (size == buffer.size()) {
    std::array<std::byte, 4096> more;
    const auto got = read_up_to(file.get(), more, path);
    if (got == 0) break;
    buffer = joined(buffer, std::span(more).first(got), std::max(2 * size, size + more.size()));
    size += got;
    size += read_up_to(file.get(), buffer.span().subspan(size), path);
  }
  buffer.shrink(size);
  return buffer;
}

std::string read_text_file(const fs::path& path) { return std::string(read_file(path).text()); }

void write_all(int fd, std::span<const ByteView> parts, const fs::path& path) {
  for (auto part : parts) {
    while (!part.empty()) {
      const auto written = ::write(fd, part.data(), part.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_with_errno("write", path);
      part = part.subspan(static_cast<std::size_t>(written));
    }
  }
}

void write_file(const fs::path& path, std::span<const ByteView> parts) {
  make_parent(path);
  const fs::path temporary = temporary_name(path);
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) fail_with_errno("write", path);
  try {
    write_all(file.get(), parts, path);
    if (::close(file.release()) != 0) fail_with_errno("write", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_with_errno("write", path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file(const fs::path& path, ByteView bytes) { write_file(path, std::span(&bytes, 1)); }

void write_file(const fs::path& path, std::string_view text) { write_file(path, as_bytes(text)); }

TemporaryDirectory::TemporaryDirectory() {
  std::error_code ignored;
  const fs::path parent = fs::temp_directory_path(ignored);
  std::string pattern = ((parent.empty() ? "/tmp" : parent) / "funcpipe-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) fail_with_errno("make a folder like", pattern);
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
