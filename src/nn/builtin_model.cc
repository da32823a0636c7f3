#include "nn/builtin_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "base/config.h"
#include "nn/module_blueprint.h"
#include "nn/module_builder.h"
#include "nn/torch_bridge.h"

namespace funcpipe {
namespace {

using nn::ModuleBlueprint;

struct Chain {
  TensorFacts input;
  std::vector<ModuleBlueprint> layers;

  void add(ModuleBlueprint layer) { layers.push_back(std::move(layer)); }
};

// Options of one model, all present: the given ones over the defaults.
class Options {
 public:
  Options(const nlohmann::json& values, std::string where)
      : reader_(ConfigNode::from_text(values.dump(), std::move(where))) {}

  std::int64_t count(const char* key) { return positive(reader_.required_node(key)); }
  std::vector<std::int64_t> counts(const char* key) {
    const auto node = reader_.required_node(key);
    if (!node.is_list()) return {positive(node)};
    std::vector<std::int64_t> values;
    for (const auto& item : node.items()) values.push_back(positive(item));
    return values;
  }
  // A list of exactly `size` values.
  std::vector<std::int64_t> counts(const char* key, std::size_t size) {
    auto values = counts(key);
    if (values.size() != size) reject(key, fmt::format("expected a list of {} values", size));
    return values;
  }
  double probability(const char* key) {
    const auto value = reader_.required<double>(key);
    if (value < 0 || value >= 1) reject(key, fmt::format("must be in [0, 1), is {}", value));
    return value;
  }
  std::string choice(const char* key, const std::vector<std::string>& known) {
    auto value = reader_.required<std::string>(key);
    if (std::find(known.begin(), known.end(), value) == known.end()) {
      reject(key, fmt::format("'{}' is not known here; choose one of {}", value,
                              fmt::join(known, ", ")));
    }
    return value;
  }
  [[noreturn]] void reject(const char* key, const std::string& message) {
    reader_.reject(key, message);
  }

 private:
  static std::int64_t positive(const ConfigNode& node) {
    const auto value = node.as<std::int64_t>();
    if (value < 1) node.reject(fmt::format("must be at least 1, is {}", value));
    return value;
  }
  ConfigReader reader_;
};

// Linear layers with activation and dropout between them, ending in `classes` outputs.
void add_classifier(Chain& chain, std::int64_t features, const std::vector<std::int64_t>& hidden,
                    std::int64_t classes, const std::string& activation, double dropout) {
  for (const auto width : hidden) {
    chain.add(nn::linear(std::exchange(features, width), width));
    chain.add(nn::activation(activation));
    if (dropout > 0) chain.add(nn::dropout(dropout));
  }
  chain.add(nn::linear(features, classes));
}

Chain mlp(Options& options) {
  Chain chain;
  chain.input.shape = options.counts("inputs");
  if (chain.input.shape.size() > 1) chain.add(nn::flatten());
  add_classifier(chain, element_count(chain.input.shape), options.counts("hidden"),
                 options.count("classes"),
                 options.choice("activation", {"relu", "tanh", "sigmoid", "gelu"}),
                 options.probability("dropout"));
  return chain;
}

// LeCun et al. 1998 with ReLU and max pooling.
Chain lenet(Options& options) {
  Chain chain;
  chain.input.shape = options.counts("image", 3);
  auto [height, width] = std::pair(chain.input.shape[1], chain.input.shape[2]);
  auto channels = chain.input.shape[0];
  const auto kernel = options.count("kernel");
  for (const auto out : options.counts("channels")) {
    chain.add(nn::convolution({.in = std::exchange(channels, out), .out = out, .kernel = kernel}));
    chain.add(nn::activation("relu"));
    chain.add(nn::max_pool(2));
    height = (height - kernel + 1) / 2;
    width = (width - kernel + 1) / 2;
    if (height < 1 || width < 1) {
      options.reject("image",
                     "too small for so many convolutions; use a larger image or fewer "
                     "channels");
    }
  }
  chain.add(nn::flatten());
  add_classifier(chain, channels * height * width, options.counts("hidden"),
                 options.count("classes"), "relu", options.probability("dropout"));
  return chain;
}

// Blocks of each group of channels: one number for all groups, or one for each.
std::vector<std::int64_t> blocks_per_group(Options& options, std::size_t groups) {
  auto blocks = options.counts("blocks");
  if (blocks.size() == 1) blocks.resize(groups, blocks.front());
  if (blocks.size() != groups) {
    options.reject("blocks",
                   fmt::format("give one number, or {}: one for each of 'channels'", groups));
  }
  return blocks;
}

// He et al. 2016, section 4.2 (CIFAR): every group of channels but the first halves the image.
Chain resnet_small(Options& options) {
  Chain chain;
  chain.input.shape = options.counts("image", 3);
  const auto channels = options.counts("channels");
  const auto blocks = blocks_per_group(options, channels.size());
  const bool as_tuples = options.choice("skip", {"block", "tuple"}) == "tuple";
  auto in = channels.front();
  chain.add(nn::convolution(
      {.in = chain.input.shape[0], .out = in, .kernel = 3, .padding = 1, .bias = false}));
  chain.add(nn::batch_norm(in));
  chain.add(nn::activation("relu"));
  for (std::size_t group = 0; group < channels.size(); ++group) {
    for (std::int64_t block = 0; block < blocks[group]; ++block) {
      const auto out = channels[group];
      const std::int64_t stride = group > 0 && block == 0 ? 2 : 1;
      if (as_tuples) {
        for (auto& layer : nn::basic_block_layers(in, out, stride)) chain.add(std::move(layer));
      } else {
        chain.add(nn::basic_block(in, out, stride));
      }
      in = out;
    }
  }
  chain.add(nn::global_average_pool());
  chain.add(nn::flatten());
  chain.add(nn::linear(in, options.count("classes")));
  return chain;
}

struct BuiltinModel {
  BuiltinModelFacts facts;
  Chain (*build)(Options&);
};

std::vector<BuiltinModel> table() {
  return {
      {{"mlp",
        "linear layers with an activation between them",
        {{"inputs", {1, 28, 28}},
         {"hidden", {128}},
         {"classes", 10},
         {"activation", "relu"},
         {"dropout", 0}}},
       mlp},
      {{"lenet",
        "two convolutions and two linear layers; 99 % on MNIST",
        {{"image", {1, 28, 28}},
         {"channels", {16, 32}},
         {"kernel", 5},
         {"hidden", {128}},
         {"classes", 10},
         {"dropout", 0}}},
       lenet},
      {{"resnet-small",
        "residual blocks with batch norm, CIFAR style",
        {{"image", {3, 32, 32}},
         {"channels", {16, 32, 64}},
         {"blocks", 2},
         {"classes", 10},
         {"skip", "block"}}},
       resnet_small},
  };
}

BuiltinModel find_model(std::string_view name) {
  std::vector<std::string> known;
  for (auto& model : table()) {
    if (model.facts.name == name) return model;
    known.push_back(model.facts.name);
  }
  const auto close = nearest(name, known);
  fail(ErrorCode::kInvalidArgument, "there is no built-in model '{}'{}; built in are {}", name,
       close ? fmt::format(": did you mean '{}'?", *close) : "", fmt::join(known, ", "));
}

// The defaults with `given` over them; only keys of the defaults are accepted.
nlohmann::json merge_options(const nlohmann::json& defaults, const nlohmann::json& given,
                             const std::string& where) {
  ConfigReader reader(ConfigNode::from_text(given.dump(), where));
  for (const auto& [key, value] : defaults.items()) reader.optional_node(key);
  reader.finish();
  auto merged = defaults;
  merged.update(given);
  return merged;
}

}  // namespace

std::vector<BuiltinModelFacts> builtin_models() {
  std::vector<BuiltinModelFacts> facts;
  for (auto& model : table()) facts.push_back(std::move(model.facts));
  return facts;
}

bool is_builtin_model(std::string_view name) {
  const auto models = table();
  return std::any_of(models.begin(), models.end(),
                     [&](const auto& model) { return model.facts.name == name; });
}

ModelArchive build_builtin_model(std::string_view name, const nlohmann::json& options,
                                 std::uint64_t seed) {
  const auto model = find_model(name);
  const auto where = fmt::format("options of built-in model '{}'", name);
  const auto given = options.is_null() ? nlohmann::json::object() : options;
  Options merged(merge_options(model.facts.options, given, where), where);
  auto chain = model.build(merged);
  try {
    return nn::build_model(model.facts.name, std::move(chain.input), chain.layers, seed);
  } catch (...) {
    nn::rethrow_as_error(where);
  }
}

}  // namespace funcpipe
