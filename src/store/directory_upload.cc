#include "store/directory_upload.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace {

// Each failure means that another process removed a folder in between, so it got on with its work.
constexpr int kMostTries = 1000;
constexpr std::size_t kPartsPerWrite = 64;

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string fresh_name_in(const std::string& folder) {
  std::random_device random;
  return fmt::format("{}/.{:08x}{:08x}.tmp", folder, random(), random());
}

// 0 or an errno. ENOENT: a folder above was removed meanwhile.
int make_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) return 0;
  const auto parent = parent_of(folder);
  if (errno != ENOENT || parent == folder) return errno;
  if (const int error = make_folder(parent); error != 0) return error;
  return ::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST ? 0 : errno;
}

bool have_proc() {
  static const bool have = ::access("/proc/self/fd", X_OK) == 0;
  return have;
}

// What link says of any file, with or without a name before.
bool is_about_target(int error_number) {
  constexpr std::array kAboutTarget = {EEXIST, ENOENT, ENOTDIR, ENOSPC,      EDQUOT,
                                       EROFS,  EACCES, EISDIR,  ENAMETOOLONG};
  return std::find(kAboutTarget.begin(), kAboutTarget.end(), error_number) != kAboutTarget.end();
}

// Takes `written` bytes from the front of `vectors`, and vectors that are done.
std::span<iovec> rest_of(std::span<iovec> vectors, std::size_t written) {
  while (!vectors.empty() && written >= vectors.front().iov_len) {
    written -= vectors.front().iov_len;
    vectors = vectors.subspan(1);
  }
  if (!vectors.empty()) {
    vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + written;
    vectors.front().iov_len -= written;
  }
  return vectors;
}

// 0 or an errno.
int write_vectors(int fd, std::span<iovec> vectors) {
  vectors = rest_of(vectors, 0);
  while (!vectors.empty()) {
    const auto written = ::writev(fd, vectors.data(), static_cast<int>(vectors.size()));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    vectors = rest_of(vectors, static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void fail_on_object(int error_number, std::string_view action, std::string_view path) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      fail(ErrorCode::kResourceExhausted, "cannot {} {}: no space left on the disk", action, path);
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
      fail(ErrorCode::kFailedPrecondition,
           "cannot {} {}: a file is where a folder must be, or a folder where the file must be (in "
           "a directory store the keys 'a' and 'a/b' exclude each other)",
           action, path);
    default:
      throw error_from_errno(error_number, fmt::format("cannot {} {}", action, path));
  }
}

DirectoryUpload::DirectoryUpload(std::string path, std::span<const ByteView> parts,
                                 TemporaryFiles kind)
    : path_(std::move(path)), folder_(parent_of(path_)), parts_(parts) {
  try {
    if (kind == TemporaryFiles::kNamed || !open_without_name()) open_with_name();
    write_parts();
  } catch (...) {
    if (!temporary_name_.empty()) ::unlink(temporary_name_.c_str());
    throw;
  }
}

DirectoryUpload::~DirectoryUpload() {
  if (!temporary_name_.empty()) ::unlink(temporary_name_.c_str());
}

void DirectoryUpload::place() {
  if (temporary_name_.empty()) {
    const int error = with_folder([&] { return link_to(path_); });
    if (error == 0) return;
    if (error != EEXIST) fail_with(error);
  }
  if (temporary_name_.empty()) give_name();
  for (int i = 0; i < kMostTries; ++i) {
    if (::rename(temporary_name_.c_str(), path_.c_str()) == 0) {
      temporary_name_.clear();
      return;
    }
    if (errno != EISDIR) fail_with(errno);
    cleared_of_empty_folder();
  }
  fail_with(EAGAIN);
}

bool DirectoryUpload::place_if_absent() {
  for (int i = 0; i < kMostTries; ++i) {
    const int error = with_folder([&] { return link_to(path_); });
    if (error == 0) return true;
    if (error != EEXIST) fail_with(error);
    if (!cleared_of_empty_folder()) return false;
  }
  fail_with(EAGAIN);
}

// 0 or an errno of `call`, which gives the same, with the folder made as often as it is missing.
template <typename Call>
int DirectoryUpload::with_folder(Call call) {
  for (int i = 0; i < kMostTries; ++i) {
    if (const int error = call(); error != ENOENT) return error;
    if (const int error = make_folder(folder_); error != 0 && error != ENOENT) return error;
  }
  return EAGAIN;
}

bool DirectoryUpload::open_without_name() {
  if (!have_proc()) return false;
  const int error = with_folder([&] {
    file_ = FileDescriptor(::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
    return file_ ? 0 : errno;
  });
  // EISDIR: the kernel does not know O_TMPFILE. EPERM: ext4 says so of a folder that is being
  // removed; with a name one gets the right answer.
  if (error == EOPNOTSUPP || error == EISDIR || error == EINVAL || error == EPERM) return false;
  if (error != 0) fail_with(error);
  return true;
}

void DirectoryUpload::open_with_name() {
  const auto name = fresh_name_in(folder_);
  const int error = with_folder([&] {
    file_ = FileDescriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    return file_ ? 0 : errno;
  });
  if (error != 0) fail_with(error);
  temporary_name_ = name;
}

void DirectoryUpload::write_parts() {
  std::array<iovec, kPartsPerWrite> vectors;
  for (auto parts = parts_; !parts.empty();) {
    const auto batch = parts.first(std::min(parts.size(), kPartsPerWrite));
    parts = parts.subspan(batch.size());
    std::transform(batch.begin(), batch.end(), vectors.begin(), [](ByteView part) {
      return iovec{const_cast<std::byte*>(part.data()), part.size()};
    });
    const int error = write_vectors(file_.get(), std::span(vectors).first(batch.size()));
    if (error != 0) fail_with(error);
  }
  // Some network file systems tell only now that the disk is full.
  if (!temporary_name_.empty() && ::close(file_.release()) != 0) fail_with(errno);
}

// 0 or an errno.
int DirectoryUpload::link_to(const std::string& path) {
  if (temporary_name_.empty()) {
    const int error = link_nameless_to(path);
    if (error == 0 || is_about_target(error)) return error;
    rewrite_with_name();
  }
  if (::link(temporary_name_.c_str(), path.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP) return errno;
  const auto* from = temporary_name_.c_str();
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) return errno;
  temporary_name_.clear();
  return 0;
}

int DirectoryUpload::link_nameless_to(const std::string& path) const {
  const auto self = fmt::format("/proc/self/fd/{}", file_.get());
  const auto* to = path.c_str();
  return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

void DirectoryUpload::give_name() {
  auto name = fresh_name_in(folder_);
  const int error = with_folder([&] { return link_nameless_to(name); });
  if (error == 0) {
    temporary_name_ = std::move(name);
  } else if (is_about_target(error)) {
    fail_with(error);
  } else {
    rewrite_with_name();
  }
}

// For file systems that make nameless files but give them no name later.
void DirectoryUpload::rewrite_with_name() {
  open_with_name();
  write_parts();
}

// Something is at the path. True: it was an empty folder, and is gone. False: it is a file.
bool DirectoryUpload::cleared_of_empty_folder() {
  if (::rmdir(path_.c_str()) == 0 || errno == ENOENT) return true;
  if (errno != ENOTDIR) fail_with(errno == EEXIST ? ENOTEMPTY : errno);
  return false;
}

void DirectoryUpload::fail_with(int error_number) const {
  fail_on_object(error_number, "put", path_);
}

}  // namespace funcpipe
