#include <cmath>

#include <nlohmann/json.hpp>

#include "core/job.h"
#include "core/job_names.h"

namespace funcpipe {
namespace {

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
  nlohmann::json json = {{"epochs", training.epochs},
                         {"batch_size", training.batch_size},
                         {"micro_batch_size", training.micro_batch_size},
                         {"shuffle", training.shuffle},
                         {"loss", std::string(to_string(training.loss))},
                         {"optimizer", optimizer_to_json(training.optimizer)},
                         {"schedule", schedule_to_json(training.schedule)},
                         {"clip_norm", training.clip_norm},
                         {"evaluate_every_epochs", training.evaluate_every_epochs}};
  if (training.steps > 0) json["steps"] = training.steps;
  return json;
}

nlohmann::json plan_to_json(const PlanSpec& plan) {
  if (!plan.file.empty()) return plan.file;
  if (plan.automatic) {
    auto json = plan.automatic->to_json();
    json["all_reduce"] = std::string(to_string(plan.all_reduce));
    return json;
  }
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
