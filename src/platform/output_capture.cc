#include "platform/output_capture.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {

OutputCapture::OutputCapture(EventLoop& loop, const std::filesystem::path& file) : path_(file) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error_from_errno(errno, "cannot make a pipe");
  reader_ = FileDescriptor(ends[0]);
  writer_ = FileDescriptor(ends[1]);
  ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
  if (!path_.empty()) {
    std::filesystem::create_directories(path_.parent_path());
    file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file_) throw error_from_errno(errno, fmt::format("cannot write {}", path_.string()));
  }
  watch_ = loop.watch(reader_.get(), [this] { drain(); });
}

void OutputCapture::note(std::string_view text) {
  drain();
  keep(text);
}

void OutputCapture::drain() {
  std::array<char, 65536> buffer;
  while (true) {
    const auto got = ::read(reader_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) watch_.reset();  // every writer is gone
    if (got <= 0) return;
    keep({buffer.data(), static_cast<std::size_t>(got)});
  }
}

void OutputCapture::keep(std::string_view text) {
  tail_ += text;
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  if (!file_) return;
  try {
    const ByteView bytes = as_bytes(text);
    write_all(file_.get(), {&bytes, 1}, path_);
  } catch (const Error&) {
    file_.reset();  // a full disk ends the file, not the function
  }
}

}  // namespace funcpipe
