// funcpipe: one binary for the client, the local platform's host and the functions.

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace funcpipe;
  CLI::App app{"Train deep-learning models on serverless functions", "funcpipe"};
  app.set_version_flag("--version", "funcpipe " FUNCPIPE_VERSION);
  app.require_subcommand(1);
  CommandResult result;
#ifdef FUNCPIPE_WITH_TORCH
  add_train_command(app, result);
  add_profile_command(app, result);
  add_model_command(app, result);
  add_doctor_command(app, result);
  add_worker_command(app, result);
#endif
  add_plan_command(app, result);
  add_simulate_command(app, result);
  add_data_command(app, result);
  add_host_command(app, result);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return result.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const funcpipe::Error& error) {
    fmt::print(stderr, "funcpipe: {}\n", error.what());
    return error.code() == funcpipe::ErrorCode::kCancelled ? funcpipe::kExitInterrupted
                                                           : funcpipe::kExitError;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "funcpipe: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "funcpipe: internal error: {}\n", error.what());
  }
  return funcpipe::kExitError;
}
