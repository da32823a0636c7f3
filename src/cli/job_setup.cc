#include "cli/job_setup.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/job_reading.h"
#include "core/batching.h"
#include "core/memory_estimate.h"
#include "core/platform_spec.h"
#include "data/dataset.h"
#include "nn/builtin_model.h"
#include "nn/model_check.h"
#include "runtime/worker.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

ModelArchive open_model(const JobSpec& job) {
  if (!job.model.builtin.empty())
    return build_builtin_model(job.model.builtin, job.model.options, job.seed);
  auto archive = open_model_archive(job.model.archive);
  check_model(archive);
  return archive;
}

void check_inputs(const ModelManifest& model, const DatasetIndex& index) {
  if (index.records == 0)
    fail(ErrorCode::kInvalidArgument, "the dataset '{}' has no records", index.name);
  if (model.inputs.size() != 1) {
    fail(ErrorCode::kInvalidArgument, "the model '{}' takes {} input tensors; a dataset gives one",
         model.name, model.inputs.size());
  }
  if (index.input.shape != model.inputs[0].shape) {
    fail(ErrorCode::kInvalidArgument,
         "records of the dataset '{}' have shape {}, the model '{}' takes {}", index.name,
         to_string(index.input.shape), model.name, to_string(model.inputs[0].shape));
  }
}

void check_normalize(const ModelManifest& model, const DataSpec& data) {
  const auto& shape = model.inputs.at(0).shape;
  const auto channels = shape.empty() ? 1 : shape[0];
  const auto values = static_cast<std::int64_t>(data.mean.size());
  if (values <= 1 || values == channels) return;
  fail(
      ErrorCode::kInvalidArgument,
      "normalize gives {} values, but the model '{}' takes {}: give one value, or {}, one for each "
      "channel",
      values, model.name, to_string(shape), channels);
}

void check_class_targets(const ModelManifest& model, const DatasetIndex& index) {
  if (index.classes == 0) {
    fail(ErrorCode::kInvalidArgument,
         "cross_entropy needs class numbers as targets; the dataset '{}' has {} {}", index.name,
         to_string(index.target.dtype), to_string(index.target.shape));
  }
  const auto& output = model.layers.back().outputs.at(0).shape;
  const auto classes = output.empty() ? 0 : output[0];
  if (classes < index.classes) {
    fail(ErrorCode::kInvalidArgument,
         "the dataset '{}' has {} classes, the model '{}' gives {} outputs", index.name,
         index.classes, model.name, classes);
  }
}

void check_value_targets(const ModelManifest& model, const DatasetIndex& index) {
  const auto& output = model.layers.back().outputs.at(0).shape;
  if (element_count(output) == element_count(index.target.shape)) return;
  fail(ErrorCode::kInvalidArgument,
       "targets of the dataset '{}' have shape {}, the model '{}' gives {}", index.name,
       to_string(index.target.shape), model.name, to_string(output));
}

void check_data(const ModelManifest& model, const DatasetIndex& index,
                const TrainingSpec& training) {
  check_inputs(model, index);
  if (model.layers.back().outputs.size() != 1) {
    fail(ErrorCode::kInvalidArgument,
         "the last layer of the model '{}' gives {} tensors; a loss needs one", model.name,
         model.layers.back().outputs.size());
  }
  if (training.loss == LossKind::kCrossEntropy) {
    check_class_targets(model, index);
  } else {
    check_value_targets(model, index);
  }
}

DatasetIndex open_data(const std::string& url, std::string_view key, const ModelManifest& model,
                       const TrainingSpec& training) {
  try {
    const auto store = open_store(url, OpenMode::kExisting);
    auto index = read_dataset_index(*store, "");
    check_data(model, index, training);
    return index;
  } catch (const Error& error) {
    throw error.with_context(fmt::format("{} ({})", key, url));
  }
}

void check_replicas(const Plan& plan, const TrainingSpec& training) {
  const auto micro_batches = count_micro_batches(training.batch_size, training.micro_batch_size);
  if (plan.replicas <= micro_batches) return;
  fail(ErrorCode::kInvalidArgument,
       "{} replicas do not fit a mini-batch of {} micro-batches ({} samples in "
       "micro-batches of {})",
       plan.replicas, micro_batches, training.batch_size, training.micro_batch_size);
}

void check_concurrency(const Plan& plan, const LocalPlatformSpec& platform) {
  const auto functions = std::int64_t{plan.replicas} * plan.stage_count();
  if (functions <= platform.max_concurrency) return;
  fail(
      ErrorCode::kInvalidArgument,
      "the plan's {} stages x {} replicas run as {} functions at a time, but max_concurrency is {}",
      plan.stage_count(), plan.replicas, functions, platform.max_concurrency);
}

// What a stage keeps of a dataset: the inputs in the first stage, the targets in the last, as far
// as its share of memory goes.
std::uint64_t kept_data_bytes(const DatasetIndex& index, bool is_first, bool is_last,
                              double memory_bytes, double share) {
  const auto records = static_cast<std::uint64_t>(index.records);
  const auto bytes = records * ((is_first ? record_bytes(index.input) : 0) +
                                (is_last ? record_bytes(index.target) : 0));
  return std::min(bytes, static_cast<std::uint64_t>(memory_bytes * share));
}

void check_stage_memory(const PreparedJob& prepared, std::size_t index) {
  const auto& plan = prepared.plan;
  const auto& stage = plan.stages[index];
  const auto& training = prepared.job.training;
  const auto micro_batches = count_micro_batches(training.batch_size, training.micro_batch_size);
  const auto estimate = estimate_stage_memory(
      prepared.model.manifest(),
      {stage.first_layer, stage.last_layer, training.micro_batch_size,
       (micro_batches + plan.replicas - 1) / plan.replicas, training.optimizer, plan.replicas});
  const auto memory_bytes = static_cast<double>(stage.memory_mb) * static_cast<double>(kMebibyte);
  const bool is_first = index == 0, is_last = index + 1 == plan.stages.size();
  const auto data =
      kept_data_bytes(prepared.train, is_first, is_last, memory_bytes, kTrainCacheShare) +
      kept_data_bytes(prepared.test, is_first, is_last, memory_bytes, kTestCacheShare);
  if (static_cast<double>(estimate.total() + data) <= memory_bytes) return;
  fail(ErrorCode::kInvalidArgument,
       "stage {} has {} MB but needs {}, and {} MB of data; raise plan.memory_mb, cut the model "
       "into more stages, or lower "
       "training.micro_batch_size",
       index, stage.memory_mb, estimate.describe(), (data + kMebibyte - 1) / kMebibyte);
}

void check_memory(const PreparedJob& prepared) {
  const auto spec = aws_lambda_spec();
  for (std::size_t i = 0; i < prepared.plan.stages.size(); ++i) {
    const int memory_mb = prepared.plan.stages[i].memory_mb;
    if (memory_mb < spec.min_memory_mb || memory_mb > spec.max_memory_mb) {
      fail(ErrorCode::kInvalidArgument, "stage {} has {} MB; a function may have {} to {} MB", i,
           memory_mb, spec.min_memory_mb, spec.max_memory_mb);
    }
    check_stage_memory(prepared, i);
  }
}

void check_store(const std::string& url) {
  if (url != "memory:") return;
  fail(ErrorCode::kInvalidArgument,
       "'{}' is within one process, and every function is a process of its own: give a folder",
       url);
}

// Runs a check of one section of the job; what it finds is told with the section's line.
template <typename Check>
auto at_section(const ConfigNode& document, std::string_view section, Check check) {
  try {
    return check();
  } catch (const Error& error) {
    const auto node = ConfigReader(document).optional_node(section);
    throw error.with_context(node ? node->where() : document.where());
  }
}

// Everything but the plan.
PreparedJob open_job(const ConfigNode& document) {
  auto job = JobSpec::from_config(document);
  auto model = at_section(document, "model", [&] { return open_model(job); });
  DatasetIndex train, test;
  at_section(document, "data", [&] {
    check_normalize(model.manifest(), job.data);
    train = open_data(job.data.train, "train", model.manifest(), job.training);
    if (!job.data.test.empty())
      test = open_data(job.data.test, "test", model.manifest(), job.training);
  });
  job.data.train = absolute_url(job.data.train);
  if (!job.data.test.empty()) job.data.test = absolute_url(job.data.test);
  at_section(document, "store", [&] { check_store(job.store); });
  if (!job.store.empty()) job.store = absolute_url(job.store);
  return {std::move(job),
          document.to_yaml(),
          std::move(model),
          std::move(train),
          std::move(test),
          {},
          {}};
}

}  // namespace

std::string url_of(const std::filesystem::path& folder) {
  return "file://" + std::filesystem::absolute(folder).lexically_normal().string();
}

std::string absolute_url(const std::string& url) {
  return url.find(':') == std::string::npos ? url_of(url) : url;
}

PreparedJob prepare_job(const std::string& path, const std::vector<std::string>& overrides) {
  const auto document = job_document(path, overrides);
  auto prepared = open_job(document);
  if (prepared.job.plan.automatic) return prepared;
  at_section(document, "plan", [&] {
    prepared.plan = plan_from_spec(prepared.job.plan, prepared.model.layer_count());
    check_replicas(prepared.plan, prepared.job.training);
  });
  at_section(document, "platform",
             [&] { check_concurrency(prepared.plan, prepared.job.platform.local); });
  at_section(document, "plan", [&] { check_memory(prepared); });
  prepared.plan_file = prepared.plan.to_json();
  return prepared;
}

void adopt_plan(PreparedJob& prepared, Plan plan, nlohmann::json plan_file) {
  prepared.plan = std::move(plan);
  prepared.plan_file = std::move(plan_file);
  check_replicas(prepared.plan, prepared.job.training);
  check_concurrency(prepared.plan, prepared.job.platform.local);
}

PreparedJob prepare_job_without_plan(const std::string& path,
                                     const std::vector<std::string>& overrides) {
  return open_job(job_document(path, overrides));
}

}  // namespace funcpipe
