#include "core/job.h"

#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "core/job_names.h"

namespace funcpipe {
namespace {

template <typename E, std::size_t N>
E read_name(const ConfigNode& node, const Names<E, N>& names) {
  const auto text = node.as<std::string>();
  std::vector<std::string> known;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    known.emplace_back(name);
  }
  node.reject(
      fmt::format("'{}' is not known here; choose one of {}", text, fmt::join(known, ", ")));
}

// Counts stay below 2^31, so that products of two of them fit 64 bits.
int read_count(ConfigReader& reader, std::string_view key, int fallback, int least) {
  const auto value = reader.optional<int>(key, fallback);
  if (value < least && reader.has(key))
    reader.reject(key, fmt::format("must be at least {}, is {}", least, value));
  return value;
}

int read_required_count(ConfigReader& reader, std::string_view key) {
  reader.required_node(key);
  return read_count(reader, key, 1, 1);
}

std::string read_path(const ConfigNode& node) {
  auto path = node.as<std::string>();
  if (path.empty()) node.reject("must not be empty");
  return path;
}

double read_number(ConfigReader& reader, std::string_view key, double fallback, double least,
                   double below) {
  const auto value = reader.optional<double>(key, fallback);
  if (value < least || value >= below) {
    reader.reject(key, std::isinf(below)
                           ? fmt::format("must be at least {}, is {}", least, value)
                           : fmt::format("must be in [{}, {}), is {}", least, below, value));
  }
  return value;
}
constexpr double kNoBound = std::numeric_limits<double>::infinity();

std::vector<int> read_ints(const ConfigNode& node) {
  std::vector<int> values;
  if (!node.is_list()) return {node.as<int>()};
  for (const auto& item : node.items()) values.push_back(item.as<int>());
  return values;
}

ModelSpec read_model(const ConfigNode& node) {
  ConfigReader reader(node);
  ModelSpec model;
  model.builtin = reader.optional<std::string>("builtin", "");
  model.archive = reader.optional<std::string>("archive", "");
  if (const auto options = reader.optional_node("options")) {
    const ConfigReader is_map(*options);
    if (!options->is_null()) model.options = options->to_json();
  }
  reader.finish();
  if (model.builtin.empty() == model.archive.empty()) {
    node.reject("give either 'builtin: NAME' or 'archive: PATH'");
  }
  if (!model.archive.empty() && !model.options.empty())
    reader.reject("options", "only a built-in model takes options");
  return model;
}

std::vector<double> read_numbers(ConfigReader& reader, std::string_view key) {
  const auto node = reader.optional_node(key);
  if (!node) return {};
  if (!node->is_list()) return {node->as<double>()};
  std::vector<double> values;
  for (const auto& item : node->items()) values.push_back(item.as<double>());
  return values;
}

DataSpec read_data(const ConfigNode& node) {
  ConfigReader reader(node);
  DataSpec data;
  data.train = read_path(reader.required_node("train"));
  if (const auto test = reader.optional_node("test")) data.test = read_path(*test);
  if (const auto normalize = reader.optional_node("normalize")) {
    ConfigReader values(*normalize);
    data.mean = read_numbers(values, "mean");
    data.scale = read_numbers(values, "std");
    values.finish();
    if (data.mean.size() != data.scale.size() || data.mean.empty()) {
      normalize->reject(
          "give 'mean' and 'std' with equally many values: one, or one for each channel");
    }
    for (const auto scale : data.scale) {
      if (!(scale > 0)) values.reject("std", "must be greater than 0");
    }
  }
  reader.finish();
  return data;
}

OptimizerSpec read_optimizer(const ConfigNode& node) {
  ConfigReader reader(node);
  OptimizerSpec spec;
  spec.kind = read_name(reader.required_node("kind"), kOptimizers);
  spec.learning_rate = read_number(
      reader, "learning_rate", spec.kind == OptimizerSpec::Kind::kSgd ? 0.01 : 0.001, 0, kNoBound);
  const double default_decay = spec.kind == OptimizerSpec::Kind::kAdamW ? 0.01 : 0.0;
  spec.weight_decay = read_number(reader, "weight_decay", default_decay, 0, kNoBound);
  if (spec.kind == OptimizerSpec::Kind::kSgd) {
    spec.momentum = read_number(reader, "momentum", 0, 0, kNoBound);
    spec.dampening = read_number(reader, "dampening", 0, 0, kNoBound);
    spec.nesterov = reader.optional<bool>("nesterov", false);
    if (spec.nesterov && (spec.momentum <= 0 || spec.dampening != 0)) {
      reader.reject("nesterov", "needs a momentum greater than 0 and no dampening");
    }
  } else {
    spec.beta1 = read_number(reader, "beta1", 0.9, 0, 1);
    spec.beta2 = read_number(reader, "beta2", 0.999, 0, 1);
    spec.epsilon = read_number(reader, "epsilon", 1e-8, 0, kNoBound);
  }
  reader.finish();
  return spec;
}

LearningRateSpec read_schedule(const ConfigNode& node) {
  ConfigReader reader(node);
  LearningRateSpec spec;
  spec.kind = read_name(reader.required_node("kind"), kSchedules);
  spec.warmup_steps = read_count(reader, "warmup_steps", 0, 0);
  if (spec.kind == LearningRateSpec::Kind::kStep) {
    spec.every_steps = read_required_count(reader, "every_steps");
    spec.factor = read_number(reader, "factor", 0.1, 0, kNoBound);
  }
  if (spec.kind == LearningRateSpec::Kind::kCosine)
    spec.minimum = read_number(reader, "minimum", 0, 0, kNoBound);
  reader.finish();
  return spec;
}

TrainingSpec read_training(const ConfigNode& node) {
  ConfigReader reader(node);
  TrainingSpec training;
  training.epochs = read_count(reader, "epochs", 1, 1);
  training.steps = read_count(reader, "steps", 0, 1);
  const int batch_size = read_required_count(reader, "batch_size");
  training.batch_size = batch_size;
  training.micro_batch_size = read_count(reader, "micro_batch_size", batch_size, 1);
  if (training.micro_batch_size > training.batch_size) {
    reader.reject("micro_batch_size", fmt::format("must not exceed batch_size ({})", batch_size));
  }
  training.shuffle = reader.optional<bool>("shuffle", true);
  if (const auto loss = reader.optional_node("loss")) training.loss = read_name(*loss, kLosses);
  if (const auto optimizer = reader.optional_node("optimizer"))
    training.optimizer = read_optimizer(*optimizer);
  if (const auto schedule = reader.optional_node("schedule")) {
    training.schedule = read_schedule(*schedule);
    if (training.schedule.minimum > training.optimizer.learning_rate) {
      schedule->reject(fmt::format("minimum must not exceed the learning rate ({})",
                                   training.optimizer.learning_rate));
    }
  }
  training.clip_norm = read_number(reader, "clip_norm", 0, 0, kNoBound);
  training.evaluate_every_epochs = read_count(reader, "evaluate_every_epochs", 1, 0);
  reader.finish();
  return training;
}

std::vector<int> read_cuts(const ConfigNode& node) {
  if (node.is_null()) return {};
  auto cuts = read_ints(node);
  int previous = 0;
  for (const auto cut : cuts) {
    if (cut <= previous) {
      node.reject(
          fmt::format("cut {} after {}: a cut is the index of the layer that begins the "
                      "next stage, from 1 on, in increasing order",
                      cut, previous));
    }
    previous = cut;
  }
  return cuts;
}

std::vector<int> read_memory(const ConfigNode& node, int stages) {
  auto memory = read_ints(node);
  for (const auto value : memory) {
    if (value < 1) node.reject(fmt::format("{} is not a memory size in MB", value));
  }
  if (memory.size() != 1 && static_cast<int>(memory.size()) != stages) {
    node.reject(fmt::format("{} values for {} stages; give one for all, or one for each",
                            memory.size(), stages));
  }
  return memory;
}

PlanSpec read_automatic_plan(ConfigReader& reader) {
  for (const auto* key : {"cuts", "stages"}) {
    if (reader.has(key))
      reader.reject(
          key, "is for the planner to choose, because 'objective' is given; drop one of the two");
  }
  PlanSpec plan;
  plan.automatic = AutoPlanSpec::from_reader(reader);
  if (const auto all_reduce = reader.optional_node("all_reduce")) {
    plan.all_reduce = all_reduce_algorithm_from_config(*all_reduce);
  }
  reader.finish();
  return plan;
}

PlanSpec read_plan(const ConfigNode& node) {
  PlanSpec plan;
  if (node.is_scalar()) {
    const auto text = node.as<std::string>();
    if (text == "auto") {
      plan.automatic.emplace();
      return plan;
    }
    if (text.find_first_of("./") == std::string::npos) {
      node.reject(fmt::format(
          "expected auto, the path of a plan file (as plan.json) or a map of keys, got '{}'",
          text));
    }
    plan.file = text;
    return plan;
  }
  ConfigReader reader(node);
  if (reader.has("objective")) return read_automatic_plan(reader);
  if (reader.has("stages")) plan.stage_count = read_required_count(reader, "stages");
  if (const auto cuts = reader.optional_node("cuts")) {
    if (plan.stage_count) cuts->reject("give either 'stages' (an even split) or 'cuts'");
    plan.cuts = read_cuts(*cuts);
  }
  if (const auto memory = reader.optional_node("memory_mb")) {
    const int stages = plan.stage_count.value_or(static_cast<int>(plan.cuts.size()) + 1);
    plan.memory_mb = read_memory(*memory, stages);
  }
  plan.replicas = read_count(reader, "replicas", 1, 1);
  if (const auto all_reduce = reader.optional_node("all_reduce")) {
    plan.all_reduce = all_reduce_algorithm_from_config(*all_reduce);
  }
  reader.finish();
  return plan;
}

double read_bandwidth(ConfigReader& reader, std::string_view key) {
  const auto node = reader.optional_node(key);
  if (!node) return kNoBound;
  try {
    return parse_bytes_per_second(node->as<std::string>());
  } catch (const Error& error) {
    node->reject(error.what());
  }
}

LocalPlatformSpec read_local(ConfigReader& reader) {
  LocalPlatformSpec local;
  local.time_limit = reader.optional<Duration>("time_limit", local.time_limit);
  if (local.time_limit < std::chrono::seconds(1))
    reader.reject("time_limit", "must be at least 1 s");
  local.uplink_bytes_per_second = read_bandwidth(reader, "uplink");
  local.downlink_bytes_per_second = read_bandwidth(reader, "downlink");
  local.latency = reader.optional<Duration>("latency", Duration::zero());
  local.cold_start = reader.optional<Duration>("cold_start", Duration::zero());
  local.time_dilation = read_number(reader, "time_dilation", 1, 1, kNoBound);
  local.max_concurrency = read_count(reader, "max_concurrency", 1000, 1);
  local.memory_limit = reader.optional<bool>("memory_limit", true);
  local.cpu_limit = reader.optional<bool>("cpu_limit", true);
  return local;
}

PlatformSection read_platform(const ConfigNode& node) {
  PlatformSection platform;
  const auto check_kind = [](const ConfigNode& at, const std::string& kind) {
    if (kind != "local")
      at.reject(fmt::format("platform '{}' is not built in; choose local", kind));
  };
  if (node.is_scalar()) {
    check_kind(node, node.as<std::string>());
    return platform;
  }
  ConfigReader reader(node);
  platform.kind = reader.optional<std::string>("kind", "local");
  check_kind(reader.has("kind") ? reader.required_node("kind") : node, platform.kind);
  platform.local = read_local(reader);
  reader.finish();
  return platform;
}

std::string read_job_name(const ConfigNode& node) {
  constexpr std::size_t kMostCharacters = 64;
  constexpr auto kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";  // of function names too
  auto name = node.as<std::string>();
  if (name.empty() || name.size() > kMostCharacters ||
      name.find_first_not_of(kAllowed) != std::string::npos) {
    node.reject(fmt::format("'{}' is not a name of 1 to {} letters, digits, '-' and '_'", name,
                            kMostCharacters));
  }
  return name;
}

void check_replicas(const ConfigNode& plan, const JobSpec& job) {
  const auto& training = job.training;
  const auto micro_batches =
      (training.batch_size + training.micro_batch_size - 1) / training.micro_batch_size;
  if (job.plan.replicas <= micro_batches) return;
  ConfigReader(plan).reject(
      "replicas", fmt::format("{} replicas do not fit a mini-batch of {} micro-batches ({} samples "
                              "in micro-batches of {}); lower replicas or micro_batch_size, or "
                              "raise batch_size",
                              job.plan.replicas, micro_batches, training.batch_size,
                              training.micro_batch_size));
}

}  // namespace

int OptimizerSpec::state_values_per_parameter() const {
  if (kind == Kind::kSgd) return momentum > 0 ? 1 : 0;
  return 2;
}

LocalPlatformSpec::LocalPlatformSpec()
    : uplink_bytes_per_second(kNoBound), downlink_bytes_per_second(kNoBound) {}

JobSpec JobSpec::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  JobSpec job;
  if (const auto name = reader.optional_node("name")) job.name = read_job_name(*name);
  const auto seed = reader.optional<std::int64_t>("seed", 0);
  if (seed < 0) reader.reject("seed", fmt::format("must be at least 0, is {}", seed));
  job.seed = static_cast<std::uint64_t>(seed);
  job.model = read_model(reader.required_node("model"));
  job.data = read_data(reader.required_node("data"));
  job.training = read_training(reader.required_node("training"));
  if (const auto plan = reader.optional_node("plan")) {
    job.plan = read_plan(*plan);
    check_replicas(*plan, job);
  }
  if (const auto platform = reader.optional_node("platform"))
    job.platform = read_platform(*platform);
  if (const auto store = reader.optional_node("store")) job.store = read_path(*store);
  reader.finish();
  return job;
}

}  // namespace funcpipe
