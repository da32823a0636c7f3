#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "nn/builtin_model.h"
#include "nn/model_archive.h"
#include "nn/model_check.h"
#include "nn/model_report.h"

namespace funcpipe {
namespace {

struct ModelOptions {
  std::string model;    // path of an archive, or name of a built-in model
  std::string options;  // of a built-in model, YAML
  std::uint64_t seed = 0;
  std::string output;
};

ModelArchive open(const ModelOptions& options) {
  if (std::filesystem::exists(options.model)) return open_model_archive(options.model);
  if (!is_builtin_model(options.model)) {
    std::string known;
    for (const auto& model : builtin_models()) known += (known.empty() ? "" : ", ") + model.name;
    fail(ErrorCode::kNotFound,
         "'{}' is neither a model archive nor a built-in model; built in are {}", options.model,
         known);
  }
  const auto node =
      ConfigNode::from_text(options.options.empty() ? "{}" : options.options, "--options");
  return build_builtin_model(options.model, node.to_json(), options.seed);
}

void list_models() {
  for (const auto& model : builtin_models()) {
    fmt::print("{:<14} {}\n{:<14} options: {}\n", model.name, model.summary, "",
               model.options.dump());
  }
}

}  // namespace

void add_model_command(CLI::App& app, CommandResult&) {
  auto* command = app.add_subcommand("model", "Look at models");
  command->require_subcommand(1);
  auto options = std::make_shared<ModelOptions>();

  auto* inspect = command->add_subcommand("inspect", "Show layers, parameters and shapes");
  inspect
      ->add_option("model", options->model,
                   "Model archive (folder or zip), or the name of a built-in model")
      ->required();
  inspect->add_option("--options", options->options,
                      "Options of a built-in model, e.g. '{classes: 100}'");
  inspect->callback([options] { fmt::print("{}", model_report(open(*options).manifest())); });

  auto* write = command->add_subcommand("write", "Write a built-in model as a model archive");
  write->add_option("model", options->model, "Name of the built-in model")->required();
  write->add_option("-o,--output", options->output, "Folder of the archive")->required();
  write->add_option("--options", options->options, "Options, e.g. '{classes: 100}'");
  write->add_option("--seed", options->seed, "Seed of the initial weights");
  write->callback([options] { write_model_archive(open(*options), options->output); });

  command->add_subcommand("list", "List the built-in models and their options")
      ->callback(list_models);
}

}  // namespace funcpipe
