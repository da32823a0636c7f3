#include <memory>
#include <set>
#include <string>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/process_start.h"
#include "platform/local_host.h"

namespace funcpipe {
namespace {

struct HostOptions {
  int control_fd = -1;
  std::string config_path;
  std::vector<int> memory_mb = {1769};
  int port = 0;
};

LocalHostConfig config_from(const HostOptions& options) {
  if (!options.config_path.empty())
    return LocalHostConfig::from_config(ConfigNode::from_file(options.config_path));
  LocalHostConfig config;
  for (const int memory : std::set<int>(options.memory_mb.begin(), options.memory_mb.end()))
    config.functions.push_back({fmt::format("funcpipe-{}", memory), memory});
  config.command = {executable_path(), "worker"};
  config.port = static_cast<std::uint16_t>(options.port);
  return config;
}

int host(const HostOptions& options) {
  if (options.control_fd >= 0) return host_main(options.control_fd);
  run_local_host(config_from(options), -1);
  return kExitOk;
}

}  // namespace

void add_host_command(CLI::App& app, CommandResult& result) {
  auto options = std::make_shared<HostOptions>();
  auto* command = app.add_subcommand(
      "host",
      "Run the local platform by itself: a machine that behaves like AWS Lambda on loopback");
  command
      ->add_option("--control-fd", options->control_fd,
                   "Descriptor of the client that starts and ends this host")
      ->group("");
  command->add_option("--config", options->config_path,
                      "Configuration file (docs/local-platform.md)");
  const auto spec = local_spec();
  command
      ->add_option("--memory", options->memory_mb,
                   "Memory options in MB; each becomes a function funcpipe-<MB>")
      ->check(CLI::Range(spec.min_memory_mb, spec.max_memory_mb));
  command->add_option("--port", options->port, "Port to listen on (default: any free one, printed)")
      ->check(CLI::Range(0, 65535));
  command->callback([options, &result] { result.exit_code = host(*options); });
}

}  // namespace funcpipe
