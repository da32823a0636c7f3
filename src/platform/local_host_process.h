// A local host in a process of its own, for the life of this object.
//
// The host ends when this object or its whole process does, also by SIGKILL: it watches a socket
// whose other end is here. It has a session of its own, so that Ctrl-C at the terminal reaches the
// client only. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/child_process.h"
#include "platform/local_host_config.h"

namespace funcpipe {

class LocalHostProcess {
 public:
  // `command` is an executable that calls host_main with the number of the descriptor that is
  // appended as its last argument: {"/usr/bin/funcpipe", "host", "--control-fd"}. `environment` is
  // the host's own, not the workers'. Returns when the host is ready; throws what the host reports,
  // or Error(kDeadlineExceeded).
  LocalHostProcess(std::vector<std::string> command, const LocalHostConfig& config,
                   std::vector<std::string> environment = {});
  // Ends the host and waits until nothing of it is left.
  ~LocalHostProcess();

  std::string endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::uint16_t port() const { return port_; }
  // How workers are limited: "cgroup v1: memory cpu", "not available: ...".
  const std::string& isolation() const { return isolation_; }
  pid_t pid() const { return process_.pid(); }

 private:
  LocalHostProcess(std::pair<FileDescriptor, FileDescriptor> ends, std::vector<std::string> command,
                   const LocalHostConfig& config, std::vector<std::string> environment);
  void wait_until_ready();

  FileDescriptor control_;
  ChildProcess process_;
  std::uint16_t port_ = 0;
  std::string isolation_;
};

}  // namespace funcpipe
