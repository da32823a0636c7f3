#include "platform/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

namespace funcpipe {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void give_up(const char* what) {
  const char* reason = ::strerrordesc_np(errno);
  for (const char* part : {"cannot start the function's process: ", what, ": ", reason, "\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(127);
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void run_child(const ChildProcessOptions& options, char* const* arguments,
                            char* const* environment, pid_t parent) {
  reset_signals();
  if (options.own_session) {
    ::setsid();
  } else {
    ::setpgid(0, 0);
  }
  if (options.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // it died before the request
  }
  const int input = ::open("/dev/null", O_RDONLY);
  if (input < 0 || ::dup2(input, STDIN_FILENO) < 0) give_up("/dev/null");
  if (options.output_fd >= 0) {
    ::dup2(options.output_fd, STDOUT_FILENO);
    ::dup2(options.output_fd, STDERR_FILENO);
  }
  for (const int group : options.cgroup_fds) {
    if (::write(group, "0", 1) != 1) give_up("cgroup.procs");
  }
  ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (options.kept_fd) ::fcntl(*options.kept_fd, F_SETFD, 0);
  ::execve(arguments[0], arguments, environment);
  give_up(arguments[0]);
}

// Only async-signal-safe work happens in the child, so this is fine in a program with threads.
// Signals are blocked meanwhile: a handler of the parent must not run in the child.
pid_t fork_and_run(const ChildProcessOptions& options) {
  const auto arguments = pointers(options.command);
  const auto environment = pointers(options.environment);
  const pid_t parent = ::getpid();
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child == 0) run_child(options, arguments.data(), environment.data(), parent);
  const int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) throw error_from_errno(reason, "cannot make a process");
  return child;
}

std::string signal_name(int number) {
  if (number == SIGKILL) return "killed";
  const char* text = ::sigdescr_np(number);
  std::string name = text != nullptr ? text : fmt::format("{}", number);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// A line "<key>: <n> kB" of /proc/<pid>/status.
std::uint64_t status_kb(pid_t pid, std::string_view key) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
  }
  return 0;
}

}  // namespace

std::string ProcessEnd::text() const {
  return signalled ? fmt::format("signal: {}", signal_name(code))
                   : fmt::format("exit status {}", code);
}

ChildProcess ChildProcess::start(const ChildProcessOptions& options) {
  if (options.command.empty()) fail(ErrorCode::kInvalidArgument, "no command to start");
  const pid_t pid = fork_and_run(options);
  if (!options.own_session) ::setpgid(pid, pid);  // whoever is first
  FileDescriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const int reason = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw error_from_errno(reason, "cannot watch a process (Linux 5.3 or later is needed)");
  }
  return {pid, std::move(pidfd)};
}

ChildProcess::~ChildProcess() {
  if (!pidfd_ || poll()) return;
  kill();
  wait_until(TimePoint::max());
}

void ChildProcess::kill() {
  if (end_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // it may not have made its group yet
}

const std::optional<ProcessEnd>& ChildProcess::poll() {
  if (end_) return end_;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return end_;
  ::kill(-pid_, SIGKILL);  // what it may have left in its group
  const bool signalled = WIFSIGNALED(status);
  end_ = ProcessEnd{signalled, signalled ? WTERMSIG(status) : WEXITSTATUS(status), usage.ru_maxrss};
  return end_;
}

bool ChildProcess::wait_until(TimePoint until) {
  while (!poll()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    const auto left = std::min<Duration>(until - now, std::chrono::seconds(1));
    pollfd ended{pidfd_.get(), POLLIN, 0};
    ::poll(&ended, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
  return true;
}

int ChildProcess::peak_memory_mb() const {
  const std::uint64_t kb =
      end_ ? static_cast<std::uint64_t>(end_->max_rss_kb) : status_kb(pid_, "VmHWM");
  return static_cast<int>((kb + 1023) / 1024);
}

std::uint64_t ChildProcess::resident_bytes() const { return status_kb(pid_, "VmRSS") * 1024; }

}  // namespace funcpipe
