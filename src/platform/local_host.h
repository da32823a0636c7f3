// A machine that behaves like AWS Lambda on loopback: the Invoke API in front, worker processes
// behind it, limited as the platform would limit them.
//
// Everything runs on one EventLoop. Nothing outlives a LocalHost: its destructor kills the worker
// processes, waits for them, removes their cgroups and closes the ports. Workers also die with the
// thread that runs the loop, however that ends.
#pragma once

#include <cstdint>
#include <string>

#include "platform/cgroup.h"
#include "platform/invoke_api.h"
#include "platform/local_host_config.h"
#include "platform/sandbox_pool.h"

namespace funcpipe {

// Lambda's limits and prices under the name "local".
PlatformSpec local_spec();

class LocalHost {
 public:
  // Listens at once. Throws Error when the port is taken or the worker's executable cannot be run.
  LocalHost(EventLoop& loop, LocalHostConfig config);
  std::uint16_t port() const { return api_.port(); }
  const std::string& isolation() const { return isolation_; }

 private:
  LocalHostConfig config_;
  PlatformSpec spec_;
  std::optional<CgroupTree> cgroups_;
  std::string isolation_;
  SandboxPool pool_;
  InvokeApi api_;
};

// Runs a host until SIGTERM or SIGINT, or until the other end of `control_fd` (a pipe or socket;
// -1: none) is closed. Writes {"port":N} and a newline to it (none: to stdout) when the host is
// ready.
void run_local_host(const LocalHostConfig& config, int control_fd);

// The whole of the host process that LocalHostProcess starts: reads its configuration, one line of
// JSON, from `control_fd`, and runs. A failure is told there as {"error":"...","code":"..."}.
// Returns the exit code.
int host_main(int control_fd);

}  // namespace funcpipe
