#include "platform/local_host.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace {

LocalHostConfig checked(LocalHostConfig config) {
  const std::string& program = config.command.at(0);
  if (::access(program.c_str(), X_OK) != 0) {
    throw error_from_errno(errno, "cannot run the worker's executable " + program);
  }
  return config;
}

void write_line(int fd, const nlohmann::json& json) {
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const ByteView bytes = as_bytes(line);
  write_all(fd, {&bytes, 1}, "the control descriptor");
}

std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (true) {
    const auto got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1)
      fail(ErrorCode::kCancelled, "the control descriptor ended before the configuration");
    if (c == '\n') return line;
    line += c;
  }
}

// SIGTERM and SIGINT as a descriptor. SIGPIPE is ignored: a peer that has gone is an error value.
FileDescriptor end_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  FileDescriptor fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) throw error_from_errno(errno, "cannot watch signals");
  return fd;
}

// Whether the other end has closed; what it may have written is of no interest.
bool at_end(int fd) {
  char waste[256];
  const auto got = ::read(fd, waste, sizeof waste);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

PlatformSpec local_spec() {
  PlatformSpec spec = aws_lambda_spec();
  spec.name = "local";
  return spec;
}

LocalHost::LocalHost(EventLoop& loop, LocalHostConfig config)
    : config_(checked(std::move(config))),
      spec_(local_spec()),
      cgroups_(config_.use_cgroups ? std::optional<CgroupTree>(std::in_place) : std::nullopt),
      isolation_(cgroups_ ? cgroups_->description() : "not available: switched off"),
      pool_(loop, config_, spec_, cgroups_ ? &*cgroups_ : nullptr),
      api_(loop, config_, spec_, pool_, isolation_) {}

void run_local_host(const LocalHostConfig& config, int control_fd) {
  const FileDescriptor signals = end_signals();
  EventLoop loop;
  const LocalHost host(loop, config);
  const auto on_signal = loop.watch(signals.get(), [&] { loop.stop(); });
  EventLoop::Handle on_end;
  if (control_fd >= 0) {
    on_end = loop.watch(control_fd, [&] {
      if (at_end(control_fd)) loop.stop();
    });
  }
  write_line(control_fd >= 0 ? control_fd : STDOUT_FILENO,
             {{"port", host.port()}, {"isolation", host.isolation()}});
  loop.run();
}

int host_main(int control_fd) {
  try {
    const ConfigNode node =
        ConfigNode::from_text(read_line(control_fd), "local host configuration");
    run_local_host(LocalHostConfig::from_config(node), control_fd);
    return 0;
  } catch (const Error& error) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
      write_line(control_fd, {{"error", error.what()}, {"code", to_string(error.code())}});
    } catch (const Error&) {
      // The client has gone: there is nobody to tell.
    }
    return 1;
  }
}

}  // namespace funcpipe
