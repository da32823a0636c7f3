// For tests: running the Python package with the interpreter that has torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nn/pipeline_fixture.h"

namespace funcpipe {

struct PythonResult {
  int exit_code = 0;
  std::string output;  // standard output and error
};

// Whether /usr/bin/python3 can import torch; tests that need it are skipped otherwise.
bool has_torch_in_python();
// Runs /usr/bin/python3 with `arguments` in `folder`, python/ on its path.
PythonResult run_python(const std::filesystem::path& folder,
                        const std::vector<std::string>& arguments);
// Writes `code` to `folder`/<name>.py.
void write_python_module(const std::filesystem::path& folder, const std::string& name,
                         const std::string& code);

// The plain PyTorch loop over the same archive and data: its losses, one for each step. The final
// weights go to `folder`/reference.pt.
std::vector<double> run_reference(const std::filesystem::path& folder, const ModelArchive& archive,
                                  const JobSpec& job, const TestDataset& data, int replicas,
                                  const std::vector<std::string>& more = {});

}  // namespace funcpipe
