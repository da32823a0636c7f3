#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "data/dataset.h"
#include "data/import.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

struct DataOptions {
  std::string source;
  std::string inputs, targets;
  std::string output;
  std::string shard_size = "4 MiB";
  std::int64_t classes = 0;  // 0: from the data
  bool replace = false;
};

ImportOptions import_options(const DataOptions& options) {
  ImportOptions result;
  result.shard_bytes = parse_bytes(options.shard_size);
  if (result.shard_bytes == 0)
    fail(ErrorCode::kInvalidArgument, "--shard-size must be greater than 0");
  if (options.classes > 0) result.classes = options.classes;
  result.replace = options.replace;
  return result;
}

void print(const ImportResult& result, const std::string& output) {
  const auto place = result.prefix.empty() ? output : output + "/" + result.prefix;
  fmt::print("{}: {}", place, describe(result.index));
}

void import_mnist_files(const DataOptions& options) {
  const auto store = open_store(options.output);
  for (const auto& result : import_mnist(options.source, *store, "", import_options(options)))
    print(result, options.output);
}

void import_files(const DataOptions& options) {
  const auto store = open_store(options.output);
  print(import_pair(options.inputs, options.targets, *store, "", import_options(options)),
        options.output);
}

void inspect(const DataOptions& options, bool verify) {
  const auto store = open_store(options.source, OpenMode::kExisting);
  const auto index = read_dataset_index(*store, "");
  if (verify) verify_dataset(*store, "", index);
  fmt::print("{}{}", describe(index), verify ? "all shards are there and whole\n" : "");
}

void add_import_options(CLI::App* command, const std::shared_ptr<DataOptions>& options) {
  command
      ->add_option("-o,--output", options->output, "Store (folder or URL) to write the dataset to")
      ->required();
  command->add_option("--shard-size", options->shard_size, "Bytes a shard, e.g. '4 MiB'");
  command
      ->add_option("--classes", options->classes,
                   "Number of classes; labels must be below (default: largest label + 1)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--replace", options->replace,
                    "Replace a different dataset that is there already");
}

}  // namespace

void add_data_command(CLI::App& app, CommandResult&) {
  auto* data = app.add_subcommand("data", "Import and inspect datasets");
  data->require_subcommand(1);
  auto* import = data->add_subcommand("import", "Turn files into a dataset");
  import->require_subcommand(1);

  auto options = std::make_shared<DataOptions>();
  auto* mnist = import->add_subcommand(
      "mnist", "MNIST, or any dataset in its file layout (IDX, gzipped or not)");
  mnist
      ->add_option("source", options->source,
                   "Folder or archive (.tar.gz, .zip) with the IDX files")
      ->required();
  add_import_options(mnist, options);
  mnist->callback([options] { import_mnist_files(*options); });

  auto* pair =
      import->add_subcommand("pair", "Any two arrays of equal length: IDX, .npy or .safetensors");
  pair->add_option("--inputs", options->inputs, "File with the inputs")->required();
  pair->add_option("--targets", options->targets, "File with the targets")->required();
  add_import_options(pair, options);
  pair->callback([options] { import_files(*options); });

  auto verify = std::make_shared<bool>(false);
  auto* inspect_command = data->add_subcommand("inspect", "Show what a dataset holds");
  inspect_command->add_option("dataset", options->source, "Folder or URL of the dataset")
      ->required();
  inspect_command->add_flag("--verify", *verify, "Read every shard and compare checksums");
  inspect_command->callback([options, verify] { inspect(*options, *verify); });
}

}  // namespace funcpipe
