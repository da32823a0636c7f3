#include "schedule/step_schedule.h"

#include <map>

#include "schedule/all_reduce_schedule.h"

namespace funcpipe {
namespace {

class Builder {
 public:
  explicit Builder(const WorkerShape& shape) : shape_(shape) {}

  // An index of -1 in `after` stands for nothing to wait for.
  int add(TaskKind kind, std::vector<int> after, int micro_batch = -1, int peer = -1) {
    std::erase(after, -1);
    tasks_.push_back({kind, micro_batch, peer, std::move(after)});
    return static_cast<int>(tasks_.size()) - 1;
  }

  void forward_pass(const std::vector<int>& micro_batches) {
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
      const int m = micro_batches[i];
      const int gate = i >= kPrefetch ? forward_.at(micro_batches[i - kPrefetch]) : -1;
      std::vector<int> inputs;
      inputs.push_back(
          add(shape_.is_first() ? TaskKind::kLoadInput : TaskKind::kReceiveActivation, {gate}, m));
      if (shape_.is_last()) inputs.push_back(add(TaskKind::kLoadTarget, {gate}, m));
      forward_[m] = add(TaskKind::kForward, inputs, m);
      if (!shape_.is_last()) add(TaskKind::kSendActivation, {forward_[m]}, m);
    }
  }

  void backward_pass(const std::vector<int>& micro_batches) {
    std::vector<int> done;
    for (auto m = micro_batches.rbegin(); m != micro_batches.rend(); ++m) {
      const int gate = done.size() >= kPrefetch ? done[done.size() - kPrefetch] : -1;
      const int gradient = shape_.is_last() ? -1 : add(TaskKind::kReceiveGradient, {gate}, *m);
      done.push_back(add(TaskKind::kBackward, {forward_.at(*m), gradient}, *m));
      if (!shape_.is_first()) add(TaskKind::kSendGradient, {done.back()}, *m);
    }
  }

  void synchronise() {
    const int pack = add(TaskKind::kPackValues, {});
    const auto offset = static_cast<int>(tasks_.size());
    for (auto task : all_reduce_tasks(shape_.all_reduce, shape_.worker.replica, shape_.replicas)) {
      for (auto& index : task.after) index += offset;
      task.after.push_back(pack);  // the memory that all of them work on
      tasks_.push_back(std::move(task));
      if (tasks_.back().kind == TaskKind::kReceiveMerged ||
          tasks_.back().kind == TaskKind::kSendMerged) {
        complete_.push_back(static_cast<int>(tasks_.size()) - 1);
      }
    }
  }

  // Replicas of a stage hold equal gradients now, so replica 0 speaks for the stage.
  void exchange_norms() {
    complete_ = {add(TaskKind::kMeasureNorm, complete_)};
    if (shape_.stages == 1) return;
    if (shape_.worker.replica == 0) add(TaskKind::kSendNorm, complete_);
    for (int stage = 0; stage < shape_.stages; ++stage) {
      if (stage != shape_.worker.stage)
        norms_.push_back(add(TaskKind::kReceiveNorm, {}, -1, stage));
    }
  }

  void update() {
    auto after = complete_;
    after.insert(after.end(), norms_.begin(), norms_.end());
    add(TaskKind::kUpdate, std::move(after));
  }

  // Tasks of the compute lane so far: what an uplink task waits for when nothing was synchronised.
  void complete_after_compute() {
    for (std::size_t i = tasks_.size(); i-- > 0;) {
      if (tasks_[i].lane() == Lane::kCompute) {
        complete_ = {static_cast<int>(i)};
        return;
      }
    }
  }

  TaskList take() { return std::move(tasks_); }

 private:
  const WorkerShape& shape_;
  TaskList tasks_;
  std::map<int, int> forward_;  // micro-batch -> its forward task
  std::vector<int> complete_;   // the synchronised values are complete after these
  std::vector<int> norms_;
};

}  // namespace

TaskList training_step(const WorkerShape& shape, const std::vector<int>& micro_batches) {
  Builder builder(shape);
  builder.forward_pass(micro_batches);
  builder.backward_pass(micro_batches);
  builder.complete_after_compute();
  if (shape.replicas > 1) builder.synchronise();
  if (shape.clip) builder.exchange_norms();
  builder.update();
  return builder.take();
}

TaskList evaluation(const WorkerShape& shape, const std::vector<int>& micro_batches) {
  Builder builder(shape);
  builder.forward_pass(micro_batches);
  return builder.take();
}

}  // namespace funcpipe
