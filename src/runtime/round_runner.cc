#include "runtime/round_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace funcpipe {
namespace {

std::vector<int> indices(const std::vector<MicroBatch>& micro_batches) {
  std::vector<int> result;
  for (const auto& micro_batch : micro_batches) result.push_back(micro_batch.index);
  return result;
}

std::int64_t samples_of(const std::vector<MicroBatch>& micro_batches) {
  std::int64_t samples = 0;
  for (const auto& micro_batch : micro_batches) samples += micro_batch.count;
  return samples;
}

TensorBundle bundle_of(std::span<const double> values) {
  TensorBundle bundle;
  TensorView view;
  view.dtype = DType::kFloat64;
  view.shape = {static_cast<std::int64_t>(values.size())};
  view.data = std::as_bytes(values);
  bundle.tensors.push_back(std::move(view));
  return bundle;
}

}  // namespace

RoundRunner::RoundRunner(const WorkerShape& shape, double clip_norm, const RoundContext& context)
    : shape_(shape),
      clip_norm_(clip_norm),
      context_(context),
      norms_(static_cast<std::size_t>(shape.stages)) {}

LossSums RoundRunner::run(const Round& round, std::stop_token stop) {
  round_ = &round;
  slots_.clear();
  slots_.resize(round.own.size());
  sums_ = {};
  if (round.training) context_.compute.begin_step();
  context_.lanes.run(
      tasks_for(round),
      [this](const Task& task, std::stop_token token) { perform(task, std::move(token)); },
      std::move(stop));
  remove_read_messages();
  return sums_;
}

const TaskList& RoundRunner::tasks_for(const Round& round) {
  auto micro_batches = indices(round.own);
  if (cached_.tasks.empty() || cached_.training != round.training ||
      cached_.micro_batches != micro_batches) {
    auto tasks =
        round.training ? training_step(shape_, micro_batches) : evaluation(shape_, micro_batches);
    cached_ = {round.training, std::move(micro_batches), std::move(tasks)};
  }
  return cached_.tasks;
}

void RoundRunner::perform(const Task& task, std::stop_token stop) {
  const TraceRecorder::Scope scope(
      context_.trace, static_cast<int>(task.lane()),
      round_->training ? describe(task) : "evaluate: " + describe(task), round_->step.index);
  const int stage = shape_.worker.stage;
  auto& mailbox = context_.mailbox;
  const auto from = [&](MessageKind kind, int other) {
    return message(kind, task.micro_batch, other, stage);
  };
  const auto to = [&](MessageKind kind, int other) {
    return message(kind, task.micro_batch, stage, other);
  };
  switch (task.kind) {
    case TaskKind::kLoadInput:
      slot(task).input = context_.inputs->take(std::move(stop));
      return;
    case TaskKind::kLoadTarget:
      slot(task).target = context_.targets->take(std::move(stop));
      return;
    case TaskKind::kReceiveActivation:
      slot(task).input = mailbox.receive(from(MessageKind::kActivation, stage - 1),
                                         context_.deadline, std::move(stop));
      return;
    case TaskKind::kForward:
      return forward(slot(task), micro_batch(task));
    case TaskKind::kSendActivation:
      mailbox.send(to(MessageKind::kActivation, stage + 1), std::exchange(slot(task).output, {}));
      return;
    case TaskKind::kReceiveGradient:
      slot(task).output_gradient = mailbox.receive(from(MessageKind::kGradient, stage + 1),
                                                   context_.deadline, std::move(stop));
      return;
    case TaskKind::kBackward:
      slot(task).input_gradient = context_.compute.backward(micro_batch_context(micro_batch(task)),
                                                            std::move(slot(task).output_gradient));
      return;
    case TaskKind::kSendGradient:
      mailbox.send(to(MessageKind::kGradient, stage - 1),
                   std::exchange(slot(task).input_gradient, {}));
      return;
    case TaskKind::kPackValues:
      return pack_values();
    case TaskKind::kMeasureNorm:
      norms_[static_cast<std::size_t>(stage)] = context_.compute.squared_gradient_norms();
      return;
    case TaskKind::kSendNorm:
      return send_norms();
    case TaskKind::kReceiveNorm:
      return receive_norms(task.peer, std::move(stop));
    case TaskKind::kUpdate:
      return update();
    case TaskKind::kSendSplit:
    case TaskKind::kReceiveSplit:
    case TaskKind::kReduceSplit:
    case TaskKind::kSendMerged:
    case TaskKind::kReceiveMerged:
      return all_reduce_->perform(task, std::move(stop));
  }
}

void RoundRunner::forward(Slot& slot, const MicroBatch& micro_batch) {
  const auto context = micro_batch_context(micro_batch);
  if (!shape_.is_last()) {
    slot.output = context_.compute.forward(context, std::move(slot.input));
    return;
  }
  const auto sums =
      context_.compute.forward_loss(context, std::move(slot.input), std::move(slot.target));
  check_loss(sums, micro_batch);
  sums_ += sums;
}

void RoundRunner::check_loss(const LossSums& sums, const MicroBatch& micro_batch) const {
  if (std::isfinite(sums.loss)) return;
  fail(ErrorCode::kFailedPrecondition,
       "the loss is {} in {} {} (micro-batch {}, learning rate {}): lower the learning rate, set "
       "training.clip_norm, or look for "
       "values that are not finite in the data",
       sums.loss, round_->training ? "step" : "the evaluation after step", round_->step.index,
       micro_batch.index, round_->learning_rate);
}

void RoundRunner::pack_values() {
  const double weight =
      static_cast<double>(samples_of(round_->own)) / static_cast<double>(round_->samples);
  all_reduce_.emplace(context_.mailbox, all_reduce_context(round_->step.index),
                      context_.compute.synchronised_values(weight));
}

void RoundRunner::send_norms() {
  const auto& own = norms_[static_cast<std::size_t>(shape_.worker.stage)];
  context_.mailbox.send(norm_message(shape_.worker.stage, round_->step.index), bundle_of(own));
}

void RoundRunner::receive_norms(int stage, std::stop_token stop) {
  const auto name = norm_message(stage, round_->step.index);
  const auto bundle = context_.mailbox.receive(name, context_.deadline, std::move(stop));
  if (bundle.tensors.size() != 1 || bundle.tensors[0].dtype != DType::kFloat64) {
    fail(ErrorCode::kDataLoss, "the {} does not hold norms", name.describe());
  }
  auto& norms = norms_[static_cast<std::size_t>(stage)];
  norms.resize(bundle.tensors[0].data.size() / sizeof(double));
  std::memcpy(norms.data(), bundle.tensors[0].data.data(), norms.size() * sizeof(double));
}

// The rule of torch.nn.utils.clip_grad_norm_.
void RoundRunner::update() {
  double scale = 1;
  if (shape_.clip) {
    double sum = 0;
    for (const auto& stage : norms_) {
      for (const double layer : stage) sum += layer;
    }
    scale = std::min(1.0, clip_norm_ / (std::sqrt(sum) + 1e-6));
  }
  context_.compute.apply(round_->learning_rate, scale);
  all_reduce_.reset();
}

// What this worker alone reads goes at once. What its peers read too goes one step later: their
// messages of this step, which have all arrived, prove that they are done with the step before.
void RoundRunner::remove_read_messages() {
  std::vector<MessageName> names;
  const int stage = shape_.worker.stage;
  for (const auto& micro_batch : round_->own) {
    if (!shape_.is_first())
      names.push_back(message(MessageKind::kActivation, micro_batch.index, stage - 1, stage));
    if (round_->training && !shape_.is_last()) {
      names.push_back(message(MessageKind::kGradient, micro_batch.index, stage + 1, stage));
    }
  }
  const auto before = round_->step.index - 1;
  const bool synchronised = round_->training && before >= 0 && shape_.replicas > 1;
  if (round_->training && before >= 0 && shape_.clip && shape_.stages > 1 &&
      shape_.worker.replica == 0) {
    names.push_back(norm_message(stage, before));
  }
  context_.background.post([&mailbox = context_.mailbox, names = std::move(names), synchronised,
                            context = all_reduce_context(before)] {
    for (const auto& name : names) mailbox.remove(name);
    if (synchronised) AllReduce::remove_messages(mailbox, context);
  });
}

RoundRunner::Slot& RoundRunner::slot(const Task& task) {
  return slots_.at(static_cast<std::size_t>(task.micro_batch - round_->own.front().index));
}

const MicroBatch& RoundRunner::micro_batch(const Task& task) const {
  return round_->own.at(static_cast<std::size_t>(task.micro_batch - round_->own.front().index));
}

MicroBatchContext RoundRunner::micro_batch_context(const MicroBatch& micro_batch) const {
  return {round_->step.index, micro_batch, round_->samples, round_->training};
}

MessageName RoundRunner::message(MessageKind kind, int micro_batch, int from_stage,
                                 int to_stage) const {
  const auto phase =
      round_->training ? MessageName::Phase::kTraining : MessageName::Phase::kEvaluation;
  const int replica = shape_.worker.replica;
  return {phase, round_->step.index, kind, micro_batch, {from_stage, replica}, {to_stage, replica}};
}

MessageName RoundRunner::norm_message(int stage, std::int64_t step) const {
  return {MessageName::Phase::kTraining, step, MessageKind::kNorm, -1, {stage, 0}, {-1, -1}};
}

AllReduceContext RoundRunner::all_reduce_context(std::int64_t step) const {
  return {step, shape_.worker.stage, shape_.worker.replica, shape_.replicas, context_.deadline};
}

}  // namespace funcpipe
