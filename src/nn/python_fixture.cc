#include "nn/python_fixture.h"

#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_index.h"
#include "data/safetensors.h"

namespace funcpipe {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// A dataset of one shard.
void write_dataset_folder(const TestDataset& data, const fs::path& folder) {
  const std::vector<std::uint32_t> all = epoch_order(data.records, 0, 0, false);
  const auto inputs = data.read_inputs(all), targets = data.read_targets(all);
  const auto file = write_safetensors(std::vector<NamedTensor>{
      {"input", inputs.tensors.front()}, {"target", targets.tensors.front()}});
  write_file(folder / "shard.safetensors", file.parts);
  DatasetIndex index;
  index.name = "test";
  index.records = data.records;
  index.input = data.input;
  index.target = data.target;
  index.shards.push_back({"shard.safetensors",
                          data.records,
                          file.size,
                          0,
                          {file.offsets[0], 0},
                          {file.offsets[1], 0}});
  write_file(folder / DatasetIndex::kFileName, index.to_json().dump());
}

std::string number(double value) { return fmt::format("{:.17g}", value); }

std::string name_of(OptimizerSpec::Kind kind) {
  constexpr std::array<const char*, 3> kNames = {"sgd", "adam", "adamw"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<std::string> reference_arguments(const fs::path& folder, const JobSpec& job,
                                             int replicas) {
  const auto& training = job.training;
  std::vector<std::string> arguments = {"-m",
                                        "funcpipe.reference",
                                        "--model",
                                        (folder / "model").string(),
                                        "--train",
                                        (folder / "data").string(),
                                        "--save",
                                        (folder / "reference.pt").string(),
                                        "--steps",
                                        std::to_string(training.steps),
                                        "--batch-size",
                                        std::to_string(training.batch_size),
                                        "--micro-batch-size",
                                        std::to_string(training.micro_batch_size),
                                        "--replicas",
                                        std::to_string(replicas),
                                        "--seed",
                                        std::to_string(job.seed),
                                        "--optimizer",
                                        name_of(training.optimizer.kind),
                                        "--lr",
                                        number(training.optimizer.learning_rate),
                                        "--weight-decay",
                                        number(training.optimizer.weight_decay),
                                        "--momentum",
                                        number(training.optimizer.momentum),
                                        "--clip-norm",
                                        number(training.clip_norm),
                                        "--loss",
                                        std::string(to_string(training.loss))};
  if (!job.data.mean.empty()) {
    arguments.push_back("--normalize-mean");
    for (const auto value : job.data.mean) arguments.push_back(number(value));
    arguments.push_back("--normalize-std");
    for (const auto value : job.data.scale) arguments.push_back(number(value));
  }
  return arguments;
}

}  // namespace

bool has_torch_in_python() {
  static const bool has = run_python("/", {"-c", "'import torch, numpy'"}).exit_code == 0;
  return has;
}

PythonResult run_python(const fs::path& folder, const std::vector<std::string>& arguments) {
  auto command = fmt::format("cd {} && PYTHONPATH={} /usr/bin/python3", quoted(folder.string()),
                             quoted(FUNCPIPE_PYTHON_PATH));
  for (const auto& argument : arguments) command += " " + argument;
  command += " 2>&1";
  PythonResult result;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"),
                                                   [](FILE*) { return 0; });
  std::array<char, 4096> chunk{};
  while (const auto count = std::fread(chunk.data(), 1, chunk.size(), pipe.get())) {
    result.output.append(chunk.data(), count);
  }
  const int status = ::pclose(pipe.get());
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

void write_python_module(const fs::path& folder, const std::string& name, const std::string& code) {
  write_file(folder / (name + ".py"), code);
}

std::vector<double> run_reference(const fs::path& folder, const ModelArchive& archive,
                                  const JobSpec& job, const TestDataset& data, int replicas,
                                  const std::vector<std::string>& more) {
  write_model_archive(archive, folder / "model");
  write_dataset_folder(data, folder / "data");
  auto arguments = reference_arguments(folder, job, replicas);
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = run_python(folder, arguments);
  if (result.exit_code != 0) fail(ErrorCode::kInternal, "the reference failed: {}", result.output);
  std::vector<double> losses;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("loss")) losses.push_back(json["loss"]);
  }
  return losses;
}

}  // namespace funcpipe
