#include "cli/job_setup.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "core/batching.h"
#include "core/memory_estimate.h"
#include "core/platform_spec.h"
#include "data/dataset.h"
#include "nn/builtin_model.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

ModelArchive open_model(const JobSpec& job) {
  if (!job.model.builtin.empty())
    return build_builtin_model(job.model.builtin, job.model.options, job.seed);
  return open_model_archive(job.model.archive);
}

DatasetIndex open_index(const std::string& url, std::string_view key) {
  try {
    const auto store = open_store(url, OpenMode::kExisting);
    return read_dataset_index(*store, "");
  } catch (const Error& error) {
    throw error.with_context(fmt::format("{} ({})", key, url));
  }
}

void check_data(const ModelManifest& model, const DatasetIndex& index, const TrainingSpec& training,
                std::string_view key) {
  if (index.records == 0)
    fail(ErrorCode::kInvalidArgument, "{}: the dataset '{}' has no records", key, index.name);
  if (model.inputs.size() != 1) {
    fail(ErrorCode::kInvalidArgument, "the model takes {} input tensors; a dataset gives one",
         model.inputs.size());
  }
  if (index.input.shape != model.inputs[0].shape) {
    fail(ErrorCode::kInvalidArgument,
         "{}: records of the dataset '{}' have shape {}, the model '{}' takes {}", key, index.name,
         to_string(index.input.shape), model.name, to_string(model.inputs[0].shape));
  }
  const auto& last = model.layers.back();
  if (training.loss == LossKind::kCrossEntropy) {
    if (index.classes == 0) {
      fail(ErrorCode::kInvalidArgument,
           "{}: cross_entropy needs class numbers as targets; the dataset '{}' has {} {}", key,
           index.name, to_string(index.target.dtype), to_string(index.target.shape));
    }
    const auto outputs =
        last.outputs.empty() || last.outputs[0].shape.empty() ? 0 : last.outputs[0].shape[0];
    if (outputs < index.classes) {
      fail(ErrorCode::kInvalidArgument,
           "{}: the dataset '{}' has {} classes, the model '{}' gives {} outputs", key, index.name,
           index.classes, model.name, outputs);
    }
  }
}

Plan resolve_plan(const PlanSpec& spec, int layers) {
  if (!spec.file.empty()) {
    auto plan = Plan::from_config(ConfigNode::from_file(spec.file));
    if (plan.stages.back().last_layer != layers) {
      fail(ErrorCode::kInvalidArgument, "{}: the plan is for a model of {} layers, this one has {}",
           spec.file, plan.stages.back().last_layer, layers);
    }
    return plan;
  }
  Plan plan;
  const auto cuts = spec.cuts.empty() ? even_cuts(layers, spec.stage_count.value_or(1)) : spec.cuts;
  plan.stages = stages_from_cuts(cuts, layers, spec.memory_mb);
  plan.replicas = spec.replicas;
  plan.all_reduce = spec.all_reduce;
  return plan;
}

void check_replicas(const Plan& plan, const TrainingSpec& training) {
  const auto micro_batches =
      split_mini_batch(training.batch_size, training.micro_batch_size).size();
  if (static_cast<std::size_t>(plan.replicas) <= micro_batches) return;
  fail(ErrorCode::kInvalidArgument,
       "the plan's {} replicas do not fit a mini-batch of {} micro-batches ({} samples in "
       "micro-batches of {})",
       plan.replicas, micro_batches, training.batch_size, training.micro_batch_size);
}

void check_stage_memory(const Plan& plan, std::size_t index, const ModelManifest& model,
                        const TrainingSpec& training) {
  const auto& stage = plan.stages[index];
  const auto micro_batches = static_cast<std::int64_t>(
      split_mini_batch(training.batch_size, training.micro_batch_size).size());
  const auto estimate =
      estimate_stage_memory(model, {stage.first_layer, stage.last_layer, training.micro_batch_size,
                                    (micro_batches + plan.replicas - 1) / plan.replicas,
                                    training.optimizer, plan.replicas});
  if (estimate.total() <= static_cast<std::uint64_t>(stage.memory_mb) * kMebibyte) return;
  fail(ErrorCode::kInvalidArgument,
       "plan: stage {} has {} MB but needs {}; raise plan.memory_mb, cut the model into more "
       "stages, or lower "
       "training.micro_batch_size",
       index, stage.memory_mb, estimate.describe());
}

void check_memory(const Plan& plan, const ModelManifest& model, const TrainingSpec& training) {
  const auto spec = aws_lambda_spec();
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const int memory_mb = plan.stages[i].memory_mb;
    if (memory_mb < spec.min_memory_mb || memory_mb > spec.max_memory_mb) {
      fail(ErrorCode::kInvalidArgument, "plan: stage {} has {} MB; a function may have {} to {} MB",
           i, memory_mb, spec.min_memory_mb, spec.max_memory_mb);
    }
    check_stage_memory(plan, i, model, training);
  }
}

}  // namespace

std::string absolute_url(const std::string& url) {
  if (url.find(':') != std::string::npos) return url;
  return "file://" + std::filesystem::absolute(url).lexically_normal().string();
}

PreparedJob prepare_job(const std::string& path, const std::vector<std::string>& overrides) {
  auto document = ConfigNode::from_file(path);
  for (const auto& assignment : overrides) document.override(assignment);
  auto job = JobSpec::from_config(document);
  auto model = open_model(job);
  const int layers = model.layer_count();
  const auto plan = [&] {
    try {
      return resolve_plan(job.plan, layers);
    } catch (const Error& error) {
      throw error.with_context(fmt::format("{}: plan", path));
    }
  }();
  check_replicas(plan, job.training);
  auto train = open_index(job.data.train, "data.train");
  check_data(model.manifest(), train, job.training, "data.train");
  DatasetIndex test;
  if (!job.data.test.empty()) {
    test = open_index(job.data.test, "data.test");
    check_data(model.manifest(), test, job.training, "data.test");
  }
  check_memory(plan, model.manifest(), job.training);
  job.data.train = absolute_url(job.data.train);
  if (!job.data.test.empty()) job.data.test = absolute_url(job.data.test);
  if (!job.store.empty()) job.store = absolute_url(job.store);
  return {std::move(job),   document.to_yaml(), std::move(model),
          std::move(train), std::move(test),    plan};
}

}  // namespace funcpipe
