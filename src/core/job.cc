#include "core/job.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/ranges.h>

namespace funcpipe {
namespace {

template <typename E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<LossKind, 2> kLosses = {
    {{LossKind::kCrossEntropy, "cross_entropy"}, {LossKind::kMeanSquaredError, "mse"}}};
constexpr Names<OptimizerSpec::Kind, 3> kOptimizers = {{{OptimizerSpec::Kind::kSgd, "sgd"},
                                                        {OptimizerSpec::Kind::kAdam, "adam"},
                                                        {OptimizerSpec::Kind::kAdamW, "adamw"}}};
constexpr Names<LearningRateSpec::Kind, 3> kSchedules = {
    {{LearningRateSpec::Kind::kConstant, "constant"},
     {LearningRateSpec::Kind::kStep, "step"},
     {LearningRateSpec::Kind::kCosine, "cosine"}}};

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

template <typename E, std::size_t N>
std::string name_of(E value, const Names<E, N>& names) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return std::string(name);
  }
  return {};
}

std::int64_t read_count(ConfigReader& reader, std::string_view key, std::int64_t fallback,
                        std::int64_t least) {
  const auto value = reader.optional<std::int64_t>(key, fallback);
  if (value < least && reader.has(key))
    reader.reject(key, fmt::format("must be at least {}, is {}", least, value));
  return value;
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
  if (!node.is_list()) return {static_cast<int>(node.as<std::int64_t>())};
  for (const auto& item : node.items()) values.push_back(static_cast<int>(item.as<std::int64_t>()));
  return values;
}

ModelSpec read_model(const ConfigNode& node) {
  ConfigReader reader(node);
  ModelSpec model;
  model.builtin = reader.optional<std::string>("builtin", "");
  model.archive = reader.optional<std::string>("archive", "");
  if (const auto options = reader.optional_node("options")) {
    ConfigReader check(*options);
    model.options = options->to_json();
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
  data.train = reader.required<std::string>("train");
  data.test = reader.optional<std::string>("test", "");
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
    spec.every_steps = reader.required<std::int64_t>("every_steps");
    if (spec.every_steps < 1) reader.reject("every_steps", "must be at least 1");
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
  if (reader.has("epochs") && reader.has("steps"))
    reader.reject("steps", "give either epochs or steps");
  training.batch_size = reader.required<std::int64_t>("batch_size");
  if (training.batch_size < 1) reader.reject("batch_size", "must be at least 1");
  training.micro_batch_size = read_count(reader, "micro_batch_size", training.batch_size, 1);
  if (training.micro_batch_size > training.batch_size) {
    reader.reject("micro_batch_size",
                  fmt::format("must not exceed batch_size ({})", training.batch_size));
  }
  training.shuffle = reader.optional<bool>("shuffle", true);
  if (const auto loss = reader.optional_node("loss")) training.loss = read_name(*loss, kLosses);
  if (const auto optimizer = reader.optional_node("optimizer"))
    training.optimizer = read_optimizer(*optimizer);
  if (const auto schedule = reader.optional_node("schedule"))
    training.schedule = read_schedule(*schedule);
  training.clip_norm = read_number(reader, "clip_norm", 0, 0, kNoBound);
  training.evaluate_every_epochs = read_count(reader, "evaluate_every_epochs", 1, 0);
  reader.finish();
  return training;
}

PlanSpec read_plan(const ConfigNode& node) {
  PlanSpec plan;
  if (node.is_scalar()) {
    const auto text = node.as<std::string>();
    if (text != "auto") plan.file = text;
    return plan;
  }
  ConfigReader reader(node);
  if (const auto stages = reader.optional_node("stages")) {
    plan.stage_count = static_cast<int>(stages->as<std::int64_t>());
    if (*plan.stage_count < 1) stages->reject("must be at least 1");
  }
  if (const auto cuts = reader.optional_node("cuts")) {
    if (plan.stage_count) cuts->reject("give either 'stages' (an even split) or 'cuts'");
    plan.cuts = cuts->is_null() ? std::vector<int>{} : read_ints(*cuts);
  }
  if (const auto memory = reader.optional_node("memory_mb")) {
    plan.memory_mb = read_ints(*memory);
    for (const auto value : plan.memory_mb) {
      if (value < 1) memory->reject(fmt::format("{} is not a memory size in MB", value));
    }
    if (plan.memory_mb.empty()) memory->reject("give one value, or one for each stage");
  }
  plan.replicas = static_cast<int>(read_count(reader, "replicas", 1, 1));
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
  local.max_concurrency = static_cast<int>(read_count(reader, "max_concurrency", 1000, 1));
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

nlohmann::json bandwidth_to_json(double value) {
  return std::isinf(value) ? nlohmann::json("inf") : nlohmann::json(fmt::format("{} B/s", value));
}

nlohmann::json duration_to_json(Duration value) { return fmt::format("{} ns", value.count()); }

nlohmann::json optimizer_to_json(const OptimizerSpec& spec) {
  nlohmann::json json = {{"kind", name_of(spec.kind, kOptimizers)},
                         {"learning_rate", spec.learning_rate},
                         {"weight_decay", spec.weight_decay}};
  if (spec.kind == OptimizerSpec::Kind::kSgd) {
    json.update(
        {{"momentum", spec.momentum}, {"dampening", spec.dampening}, {"nesterov", spec.nesterov}});
  } else {
    json.update({{"beta1", spec.beta1}, {"beta2", spec.beta2}, {"epsilon", spec.epsilon}});
  }
  return json;
}

nlohmann::json schedule_to_json(const LearningRateSpec& spec) {
  nlohmann::json json = {{"kind", name_of(spec.kind, kSchedules)},
                         {"warmup_steps", spec.warmup_steps}};
  if (spec.kind == LearningRateSpec::Kind::kStep) {
    json.update({{"every_steps", spec.every_steps}, {"factor", spec.factor}});
  }
  if (spec.kind == LearningRateSpec::Kind::kCosine) json["minimum"] = spec.minimum;
  return json;
}

nlohmann::json training_to_json(const TrainingSpec& training) {
  nlohmann::json json = {{"batch_size", training.batch_size},
                         {"micro_batch_size", training.micro_batch_size},
                         {"shuffle", training.shuffle},
                         {"loss", std::string(to_string(training.loss))},
                         {"optimizer", optimizer_to_json(training.optimizer)},
                         {"schedule", schedule_to_json(training.schedule)},
                         {"clip_norm", training.clip_norm},
                         {"evaluate_every_epochs", training.evaluate_every_epochs}};
  if (training.steps > 0) {
    json["steps"] = training.steps;
  } else {
    json["epochs"] = training.epochs;
  }
  return json;
}

nlohmann::json plan_to_json(const PlanSpec& plan) {
  if (!plan.file.empty()) return plan.file;
  nlohmann::json json = {{"memory_mb", plan.memory_mb},
                         {"replicas", plan.replicas},
                         {"all_reduce", std::string(to_string(plan.all_reduce))}};
  if (plan.stage_count) json["stages"] = *plan.stage_count;
  if (!plan.cuts.empty()) json["cuts"] = plan.cuts;
  return json;
}

nlohmann::json platform_to_json(const PlatformSection& platform) {
  const auto& local = platform.local;
  return {{"kind", platform.kind},
          {"time_limit", duration_to_json(local.time_limit)},
          {"uplink", bandwidth_to_json(local.uplink_bytes_per_second)},
          {"downlink", bandwidth_to_json(local.downlink_bytes_per_second)},
          {"latency", duration_to_json(local.latency)},
          {"cold_start", duration_to_json(local.cold_start)},
          {"time_dilation", local.time_dilation},
          {"max_concurrency", local.max_concurrency},
          {"memory_limit", local.memory_limit},
          {"cpu_limit", local.cpu_limit}};
}

nlohmann::json data_to_json(const DataSpec& data) {
  nlohmann::json json = {{"train", data.train}};
  if (!data.test.empty()) json["test"] = data.test;
  if (!data.mean.empty()) json["normalize"] = {{"mean", data.mean}, {"std", data.scale}};
  return json;
}

nlohmann::json model_to_json(const ModelSpec& model) {
  if (!model.archive.empty()) return {{"archive", model.archive}};
  return {{"builtin", model.builtin}, {"options", model.options}};
}

}  // namespace

std::string_view to_string(LossKind kind) {
  return kind == LossKind::kCrossEntropy ? "cross_entropy" : "mse";
}

int OptimizerSpec::state_values_per_parameter() const {
  if (kind == Kind::kSgd) return momentum > 0 ? 1 : 0;
  return 2;
}

LocalPlatformSpec::LocalPlatformSpec()
    : uplink_bytes_per_second(kNoBound), downlink_bytes_per_second(kNoBound) {}

JobSpec JobSpec::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  JobSpec job;
  job.name = reader.optional<std::string>("name", "job");
  job.seed = static_cast<std::uint64_t>(read_count(reader, "seed", 0, 0));
  job.model = read_model(reader.required_node("model"));
  job.data = read_data(reader.required_node("data"));
  job.training = read_training(reader.required_node("training"));
  if (const auto plan = reader.optional_node("plan")) job.plan = read_plan(*plan);
  if (const auto platform = reader.optional_node("platform"))
    job.platform = read_platform(*platform);
  job.store = reader.optional<std::string>("store", "");
  reader.finish();
  if (job.plan.file.empty()) {
    const auto micro_batches = (job.training.batch_size + job.training.micro_batch_size - 1) /
                               job.training.micro_batch_size;
    if (job.plan.replicas > micro_batches) {
      ConfigReader plan(reader.required_node("plan"));
      plan.reject("replicas", fmt::format("{} replicas do not fit a mini-batch of {} micro-batches "
                                          "({} samples in micro-batches of {}); "
                                          "lower replicas or micro_batch_size, or raise batch_size",
                                          job.plan.replicas, micro_batches, job.training.batch_size,
                                          job.training.micro_batch_size));
    }
  }
  return job;
}

nlohmann::json JobSpec::to_json() const {
  nlohmann::json json = {{"name", name},
                         {"seed", seed},
                         {"model", model_to_json(model)},
                         {"data", data_to_json(data)},
                         {"training", training_to_json(training)},
                         {"plan", plan_to_json(plan)},
                         {"platform", platform_to_json(platform)}};
  if (!store.empty()) json["store"] = store;
  return json;
}

}  // namespace funcpipe
