// A child process with its own process group, watched through a pidfd.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/file.h"

namespace funcpipe {

struct ChildProcessOptions {
  std::vector<std::string> command;      // path of the executable, arguments
  std::vector<std::string> environment;  // "NAME=value": all of it
  int output_fd = -1;                    // for stdout and stderr; -1: those of this process
  std::optional<int> kept_fd;            // the one other descriptor that the child inherits
  std::vector<int> cgroup_fds;  // open cgroup.procs files that the child enters before exec
  bool own_session = false;     // not only its own process group
  // SIGKILL for the child when the *thread* that starts it ends.
  bool die_with_parent = false;
};

// How a process ended.
struct ProcessEnd {
  bool signalled = false;
  int code = 0;              // exit status or signal number
  long max_rss_kb = 0;       // peak resident set
  std::string text() const;  // "exit status 3", "signal: killed"
};

// Not thread-safe. The destructor kills what is left and waits for it.
class ChildProcess {
 public:
  // Never waits for exec: a command that cannot be run ends with status 127 and a line on stderr.
  // Throws Error when no process can be made. stdin is /dev/null; signals are reset.
  static ChildProcess start(const ChildProcessOptions& options);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable when the process has ended
  void kill();                                // SIGKILL to the whole process group
  // How it ended, if it has; reaps it.
  const std::optional<ProcessEnd>& poll();
  // Waits for the end until `until`; false when it is still running.
  bool wait_until(TimePoint until);
  // Peak resident set so far, in MiB rounded up; 0 when it cannot be told.
  int peak_memory_mb() const;
  std::uint64_t resident_bytes() const;

 private:
  ChildProcess(pid_t pid, FileDescriptor pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  FileDescriptor pidfd_;  // empty after a move
  std::optional<ProcessEnd> end_;
};

}  // namespace funcpipe
