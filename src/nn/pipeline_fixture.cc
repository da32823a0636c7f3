#include "nn/pipeline_fixture.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/rng.h"
#include "core/batching.h"
#include "core/learning_rate.h"

namespace funcpipe {
namespace {

TensorBundle gather(const TensorFacts& facts, const Buffer& records,
                    const std::vector<std::uint32_t>& order) {
  const auto size = static_cast<std::size_t>(element_count(facts.shape)) * size_of(facts.dtype);
  const auto buffer = std::make_shared<Buffer>(size * order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(buffer->data() + i * size, records.data() + order[i] * size, size);
  }
  TensorBundle bundle;
  auto& view = bundle.tensors.emplace_back();
  view.dtype = facts.dtype;
  view.shape = facts.shape;
  view.shape.insert(view.shape.begin(), static_cast<std::int64_t>(order.size()));
  view.data = buffer->view();
  bundle.owner = buffer;
  return bundle;
}

std::vector<std::uint32_t> slice(const std::vector<std::uint32_t>& order, std::int64_t first,
                                 std::int64_t count) {
  return {order.begin() + first, order.begin() + first + count};
}

}  // namespace

TestDataset TestDataset::images(const Shape& shape, std::uint32_t records, int classes,
                                std::uint64_t seed) {
  TestDataset data;
  data.input = {"", DType::kUInt8, shape};
  data.target = {"", DType::kInt64, {}};
  data.records = records;
  data.inputs = Buffer(static_cast<std::size_t>(element_count(shape)) * records);
  data.targets = Buffer(sizeof(std::int64_t) * records);
  Rng rng(seed);
  for (auto& value : data.inputs.span()) value = static_cast<std::byte>(rng.below(256));
  auto* targets = reinterpret_cast<std::int64_t*>(data.targets.data());
  for (std::uint32_t i = 0; i < records; ++i) {
    targets[i] = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes)));
  }
  return data;
}

TensorBundle TestDataset::read_inputs(const std::vector<std::uint32_t>& order) const {
  return gather(input, inputs, order);
}

TensorBundle TestDataset::read_targets(const std::vector<std::uint32_t>& order) const {
  return gather(target, targets, order);
}

TestPipeline::TestPipeline(const ModelArchive& archive, const JobSpec& job,
                           const std::vector<int>& cuts, int replicas, int segment_layers)
    : segmented(segment_layers > 0), job_(job), replicas_(replicas) {
  std::vector<int> bounds = {0};
  bounds.insert(bounds.end(), cuts.begin(), cuts.end());
  bounds.push_back(archive.layer_count());
  for (int replica = 0; replica < replicas; ++replica) {
    auto& stages = stages_.emplace_back();
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      auto options = torch_stage_options(archive, bounds[i], bounds[i + 1], job, 1);
      for (int cut = segment_layers; segmented && cut < bounds[i + 1] - bounds[i];
           cut += segment_layers)
        options.segment_cuts.push_back(static_cast<std::size_t>(cut));
      stages.push_back(make_torch_stage(options));
    }
  }
}

LossSums TestPipeline::forward(std::size_t replica, MicroBatchContext context, TensorBundle input,
                               TensorBundle target) {
  auto& stages = stages_[replica];
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    input = stages[i]->forward(context, std::move(input));
  }
  return stages.back()->forward_loss(context, std::move(input), std::move(target));
}

LossSums TestPipeline::run_replica(std::size_t replica, const TestDataset& data, const Step& step) {
  const auto order = epoch_order(data.records, step.epoch, job_.seed, job_.training.shuffle);
  const auto share = share_of(split_mini_batch(step.count, job_.training.micro_batch_size),
                              static_cast<int>(replica), replicas_);
  auto& stages = stages_[replica];
  for (auto& stage : stages) stage->begin_step();
  LossSums sums;
  const auto context = [&](const MicroBatch& micro_batch) {
    MicroBatchContext result{step.index, micro_batch, step.count, true};
    result.recompute = recompute;
    result.segmented = segmented && micro_batch.index == share.front().index;
    return result;
  };
  for (const auto& micro_batch : share) {
    const auto records = slice(order, step.first + micro_batch.first, micro_batch.count);
    sums += forward(replica, context(micro_batch), data.read_inputs(records),
                    data.read_targets(records));
  }
  for (auto micro_batch = share.rbegin(); micro_batch != share.rend(); ++micro_batch) {
    TensorBundle gradient;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      gradient = run_backward(**stage, context(*micro_batch), std::move(gradient));
    }
  }
  return sums;
}

TensorBundle TestPipeline::run_backward(StageCompute& stage, MicroBatchContext context,
                                        TensorBundle gradient) {
  if (context.recompute) stage.recompute(context);
  const auto segments = context.segmented ? static_cast<int>(stage.segment_begins().size()) : 1;
  for (; context.segment < segments; ++context.segment)
    gradient = stage.backward(context, std::move(gradient));
  return gradient;
}

void TestPipeline::all_reduce(const Step& step) {
  const auto all = split_mini_batch(step.count, job_.training.micro_batch_size);
  for (std::size_t stage = 0; stage < stages_.front().size(); ++stage) {
    std::vector<std::span<float>> values;
    for (int replica = 0; replica < replicas_; ++replica) {
      double samples = 0;
      for (const auto& micro_batch : share_of(all, replica, replicas_)) {
        samples += static_cast<double>(micro_batch.count);
      }
      values.push_back(stages_[static_cast<std::size_t>(replica)][stage]->synchronised_values(
          samples / static_cast<double>(step.count)));
    }
    for (std::size_t i = 0; i < values.front().size(); ++i) {
      float sum = 0;
      for (const auto& value : values) sum += value[i];
      for (const auto& value : values) value[i] = sum;
    }
  }
}

void TestPipeline::apply(const Step& step) {
  const auto rate = learning_rate(job_.training.schedule, job_.training.optimizer.learning_rate,
                                  step.index, job_.training.steps);
  for (auto& stages : stages_) {
    double squares = 0;
    for (auto& stage : stages) {
      for (const auto norm : stage->squared_gradient_norms()) squares += norm;
    }
    const double clip = job_.training.clip_norm;
    const double scale = clip > 0 ? std::min(1.0, clip / (std::sqrt(squares) + 1e-6)) : 1.0;
    for (auto& stage : stages) stage->apply(rate, scale);
  }
}

std::vector<double> TestPipeline::train(const TestDataset& data, std::int64_t first,
                                        std::int64_t last) {
  const StepSequence steps(data.records, job_.training.batch_size, 1, job_.training.steps);
  std::vector<double> losses;
  for (auto index = first; index < last; ++index) {
    const auto step = steps.at(index);
    LossSums sums;
    for (std::size_t r = 0; r < stages_.size(); ++r) sums += run_replica(r, data, step);
    if (replicas_ > 1) all_reduce(step);
    apply(step);
    losses.push_back(sums.loss / static_cast<double>(sums.samples));
  }
  return losses;
}

LossSums TestPipeline::evaluate(const TestDataset& data) {
  LossSums sums;
  const auto order = epoch_order(data.records, 0, 0, false);
  for (const auto& micro_batch : split_mini_batch(data.records, job_.training.micro_batch_size)) {
    const auto records = slice(order, micro_batch.first, micro_batch.count);
    sums += forward(0, {0, micro_batch, data.records, false}, data.read_inputs(records),
                    data.read_targets(records));
  }
  return sums;
}

std::map<std::string, std::string> TestPipeline::weights() const {
  std::map<std::string, std::string> result;
  for (const auto& stage : stages_.front()) {
    const auto weights = stage->weights();
    for (const auto& [name, tensor] : weights.tensors) {
      result[name] = std::string(as_text(tensor.data));
    }
  }
  return result;
}

std::vector<NamedTensors> TestPipeline::states() const {
  std::vector<NamedTensors> states;
  for (const auto& stage : stages_.front()) states.push_back(stage->state());
  return states;
}

void TestPipeline::load(const NamedTensors& state) {
  for (auto& stages : stages_) {
    for (auto& stage : stages) stage->load_state(state);
  }
}

NamedTensors TestPipeline::named_weights() const {
  NamedTensors all;
  auto owners = std::make_shared<std::vector<NamedTensors>>();
  for (const auto& stage : stages_.front()) owners->push_back(stage->weights());
  for (const auto& part : *owners) {
    all.tensors.insert(all.tensors.end(), part.tensors.begin(), part.tensors.end());
  }
  all.owner = std::move(owners);
  return all;
}

TestRun run_training(const ModelArchive& archive, const JobSpec& job, const TestDataset& data,
                     const std::vector<int>& cuts, int replicas, std::int64_t steps) {
  TestPipeline pipeline(archive, job, cuts, replicas);
  auto losses = pipeline.train(data, 0, steps);
  return {std::move(losses), pipeline.weights()};
}

}  // namespace funcpipe
