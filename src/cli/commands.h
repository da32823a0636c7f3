// The commands of the command line. Each adds itself to the application; its work runs after
// parsing and ends in an exit code.
#pragma once

#include <CLI/App.hpp>

namespace funcpipe {

constexpr int kExitOk = 0;
constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

// Where a command leaves its exit code.
struct CommandResult {
  int exit_code = kExitOk;
};

void add_train_command(CLI::App& app, CommandResult& result);
void add_plan_command(CLI::App& app, CommandResult& result);
void add_simulate_command(CLI::App& app, CommandResult& result);
void add_profile_command(CLI::App& app, CommandResult& result);
void add_data_command(CLI::App& app, CommandResult& result);
void add_model_command(CLI::App& app, CommandResult& result);
void add_doctor_command(CLI::App& app, CommandResult& result);
void add_host_command(CLI::App& app, CommandResult& result);
void add_worker_command(CLI::App& app, CommandResult& result);

}  // namespace funcpipe
