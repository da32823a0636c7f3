#include "platform/local_host_process.h"

#include <cerrno>
#include <utility>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"

namespace funcpipe {
namespace {

constexpr Duration kStartLimit = std::chrono::seconds(20);
constexpr Duration kStopLimit = std::chrono::seconds(10);

// Sockets, so that writing to a host that has died is an error here and no signal.
std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw error_from_errno(errno, "cannot make a socket pair");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

ChildProcess start(std::vector<std::string> command, std::vector<std::string> environment,
                   int control) {
  ChildProcessOptions options;
  options.command = std::move(command);
  options.command.push_back(std::to_string(control));
  options.environment = std::move(environment);
  options.kept_fd = control;
  options.own_session = true;
  return ChildProcess::start(options);
}

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw error_from_errno(errno, "the local host ended at its start");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string receive_line(int socket, TimePoint until) {
  std::string line;
  while (true) {
    const Duration left = until - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) {
      fail(ErrorCode::kDeadlineExceeded, "the local host was not ready within {}",
           format_duration(kStartLimit));
    }
    pollfd readable{socket, POLLIN, 0};
    ::poll(&readable, 1,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
    char c = 0;
    const auto got = ::recv(socket, &c, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) fail(ErrorCode::kUnavailable, "the local host ended at its start");
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace

LocalHostProcess::LocalHostProcess(std::vector<std::string> command, const LocalHostConfig& config,
                                   std::vector<std::string> environment)
    : LocalHostProcess(socket_pair(), std::move(command), config, std::move(environment)) {}

LocalHostProcess::LocalHostProcess(std::pair<FileDescriptor, FileDescriptor> ends,
                                   std::vector<std::string> command, const LocalHostConfig& config,
                                   std::vector<std::string> environment)
    : control_(std::move(ends.first)),
      process_(start(std::move(command), std::move(environment), ends.second.get())) {
  ends.second.reset();
  send_all(control_.get(), config.to_json().dump() + "\n");
  wait_until_ready();
}

void LocalHostProcess::wait_until_ready() {
  const std::string line =
      receive_line(control_.get(), std::chrono::steady_clock::now() + kStartLimit);
  const auto answer = nlohmann::json::parse(line, nullptr, false);
  if (answer.contains("error")) {
    throw Error(error_code_from_string(answer.value("code", "")),
                "local host: " + answer.value("error", ""));
  }
  if (!answer.contains("port")) fail(ErrorCode::kInternal, "the local host answered '{}'", line);
  port_ = answer.value("port", std::uint16_t{0});
  isolation_ = answer.value("isolation", "");
}

LocalHostProcess::~LocalHostProcess() {
  control_.reset();
  process_.wait_until(std::chrono::steady_clock::now() + kStopLimit);
}

}  // namespace funcpipe
