// Files of the local disk: read whole, written whole or not at all.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/buffer.h"

namespace funcpipe {

// Throw Error(kNotFound) when there is no such file, and other codes of error_from_errno; the text
// names the path. Pipes and files of /proc are read to their end.
Buffer read_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// Writes a temporary file beside `path` and renames it: a reader sees the old content or the new
// one, never a part. Missing parent folders are made. Nothing is left behind on failure. Survives
// the end of the process, not a loss of power (no fsync).
void write_file(const std::filesystem::path& path, std::span<const ByteView> parts);
void write_file(const std::filesystem::path& path, ByteView bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

// A fresh folder under the system's temporary directory, removed with all it holds at the end of
// the object's life.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// An owned POSIX file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// Writes all parts to an open descriptor; `path` is for the error text.
void write_all(int fd, std::span<const ByteView> parts, const std::filesystem::path& path);

}  // namespace funcpipe
