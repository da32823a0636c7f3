// Takes what a process writes to a pipe: keeps the tail in memory, the whole in a file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/file.h"
#include "net/event_loop.h"

namespace funcpipe {

// Lives on the loop's thread.
class OutputCapture {
 public:
  static constexpr std::size_t kTailBytes = 4096;  // what Lambda returns of a log

  // `file` is made anew; empty: none. Throws Error when it cannot be written.
  OutputCapture(EventLoop& loop, const std::filesystem::path& file);

  int writer() const { return writer_.get(); }  // for the child
  void close_writer() { writer_.reset(); }      // once the child has it
  // Adds a line of the host's own, after what the process has written so far.
  void note(std::string_view text);
  // Takes what is in the pipe now.
  void drain();
  void forget_tail() { tail_.clear(); }
  const std::string& tail() const { return tail_; }

 private:
  void keep(std::string_view text);

  FileDescriptor reader_, writer_, file_;
  std::filesystem::path path_;
  std::string tail_;
  EventLoop::Handle watch_;  // goes before reader_
};

}  // namespace funcpipe
