#include "sim/task_costs.h"

#include <cmath>

#include "schedule/all_reduce_schedule.h"

namespace funcpipe::sim {
namespace {

// A message of one tensor on the wire (docs/formats.md): header and data are padded to this.
constexpr std::uint64_t kWireBlock = 64;

class Pricer {
 public:
  Pricer(const StepContext& context, const WorkerShape& shape, const Task& task)
      : context_(context),
        shape_(shape),
        task_(task),
        stage_(context.stages[static_cast<std::size_t>(shape.worker.stage)]) {}

  TaskCosts costs() const {
    const auto& overhead = context_.options.overhead(task_.kind);
    const auto bytes = task_.lane() == Lane::kCompute ? 0 : message_bytes();
    const double touched =
        task_.lane() == Lane::kCompute ? touched_bytes() : static_cast<double>(bytes);
    return {sim_time(compute_seconds() + overhead.seconds + overhead.seconds_per_byte * touched),
            bytes};
  }

 private:
  // Samples of the task's micro-batch as a fraction of a full one.
  double fraction() const {
    const auto& micro_batch = context_.micro_batches[static_cast<std::size_t>(task_.micro_batch)];
    return static_cast<double>(micro_batch.count) / static_cast<double>(context_.micro_batch_size);
  }

  double compute_seconds() const {
    switch (task_.kind) {
      case TaskKind::kForward:
        return stage_.forward_seconds * fraction();
      case TaskKind::kBackward:
        return stage_.backward_seconds * fraction();
      case TaskKind::kUpdate:
        return stage_.update_seconds;
      default:
        return 0;
    }
  }

  std::uint64_t message_bytes() const {
    switch (task_.kind) {
      case TaskKind::kReceiveActivation:
      case TaskKind::kSendGradient:
        return static_cast<std::uint64_t>(std::llround(stage_.input_bytes * fraction()));
      case TaskKind::kSendActivation:
      case TaskKind::kReceiveGradient:
        return static_cast<std::uint64_t>(std::llround(stage_.output_bytes * fraction()));
      case TaskKind::kSendSplit:
      case TaskKind::kReceiveMerged:
        return on_wire(split_bytes(task_.peer));
      case TaskKind::kReceiveSplit:
      case TaskKind::kSendMerged:
        return on_wire(split_bytes(shape_.worker.replica));
      case TaskKind::kSendNorm:
        return norm_bytes(stage_);
      case TaskKind::kReceiveNorm:
        return norm_bytes(context_.stages[static_cast<std::size_t>(task_.peer)]);
      default:
        return 0;
    }
  }

  double touched_bytes() const {
    switch (task_.kind) {
      case TaskKind::kForward:
      case TaskKind::kBackward:
        return (stage_.input_bytes + stage_.output_bytes) * fraction();
      case TaskKind::kReduceSplit:
        return static_cast<double>(split_bytes(shape_.worker.replica)) * (shape_.replicas - 1);
      default:
        return static_cast<double>(stage_.values * sizeof(float));
    }
  }

  std::uint64_t split_bytes(int rank) const {
    return split_range(stage_.values, rank, shape_.replicas).count * sizeof(float);
  }
  std::uint64_t norm_bytes(const StageCosts& stage) const {
    return on_wire(static_cast<std::uint64_t>(stage.layers) * sizeof(double));
  }
  std::uint64_t on_wire(std::uint64_t bytes) const {
    if (!context_.options.wire_headers) return bytes;
    return kWireBlock + (bytes + kWireBlock - 1) / kWireBlock * kWireBlock;
  }

  const StepContext& context_;
  const WorkerShape& shape_;
  const Task& task_;
  const StageCosts& stage_;
};

}  // namespace

TaskCosts task_costs(const StepContext& context, const WorkerShape& shape, const Task& task) {
  return Pricer(context, shape, task).costs();
}

}  // namespace funcpipe::sim
