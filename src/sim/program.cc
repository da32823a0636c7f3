#include "sim/program.h"

#include <numeric>
#include <utility>

namespace funcpipe::sim {
namespace {

std::vector<int> indices(const std::vector<MicroBatch>& micro_batches) {
  std::vector<int> result;
  result.reserve(micro_batches.size());
  for (const auto& micro_batch : micro_batches) result.push_back(micro_batch.index);
  return result;
}

// As the runtime's RoundRunner removes them: what this worker alone reads at once, what others read
// too when the next step proves that they have.
void count_removes(ProgramWorker& worker, std::size_t micro_batches) {
  const auto& shape = worker.shape;
  const auto own = static_cast<std::uint32_t>(micro_batches);
  worker.removes = (shape.is_first() ? 0 : own) + (shape.is_last() ? 0 : own);
  if (shape.replicas > 1)
    worker.removes_of_step_before += static_cast<std::uint32_t>(shape.replicas);
  if (shape.clip && shape.stages > 1 && shape.worker.replica == 0) ++worker.removes_of_step_before;
}

}  // namespace

ProgramBuilder::ProgramBuilder(const StepContext& context, int stages, int replicas)
    : context_(context),
      slots_(stages, replicas, context.micro_batches.size()),
      senders_(slots_.count(), kNone) {}

void ProgramBuilder::add(const WorkerShape& shape, const TaskList& tasks) {
  ProgramWorker worker;
  worker.shape = shape;
  worker.first = static_cast<std::uint32_t>(program_.tasks.size());
  for (const auto& task : tasks) {
    const auto index = static_cast<std::uint32_t>(program_.tasks.size());
    auto& added = program_.tasks.emplace_back();
    added.kind = task.kind;
    added.lane = task.lane();
    added.micro_batch = task.micro_batch;
    added.peer = task.peer;
    added.worker = static_cast<std::uint32_t>(program_.workers.size());
    added.dependencies = static_cast<std::uint32_t>(task.after.size());
    added.costs = task_costs(context_, shape, task);
    for (const int before : task.after)
      edges_.push_back({worker.first + static_cast<std::uint32_t>(before), index});
    if (is_send(task.kind)) senders_[slots_.slot(shape, task)] = index;
  }
  worker.last = static_cast<std::uint32_t>(program_.tasks.size());
  link_lanes(worker);
  program_.workers.push_back(worker);
}

void ProgramBuilder::link_lanes(ProgramWorker& worker) {
  for (auto i = worker.last; i-- > worker.first;) {
    auto& task = program_.tasks[i];
    auto& first = worker.first_in_lane[static_cast<std::size_t>(task.lane)];
    task.next_in_lane = std::exchange(first, i);
  }
}

void ProgramBuilder::link_messages() {
  for (auto& task : program_.tasks) {
    if (!is_receive(task.kind)) continue;
    const auto& shape = program_.workers[task.worker].shape;
    task.source = senders_[slots_.slot(shape, task.task())];
  }
}

// A counting sort of the edges by their first task.
void ProgramBuilder::link_dependents() {
  auto& first = program_.first_dependent;
  first.assign(program_.tasks.size() + 1, 0);
  for (const auto& edge : edges_) ++first[edge.from + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  program_.dependents.resize(edges_.size());
  auto next = first;
  for (const auto& edge : edges_) program_.dependents[next[edge.from]++] = edge.to;
}

Program ProgramBuilder::take() {
  link_messages();
  link_dependents();
  return std::move(program_);
}

Program make_program(const StepContext& context, const Plan& plan, bool clip) {
  ProgramBuilder builder(context, plan.stage_count(), plan.replicas);
  std::vector<std::size_t> own_counts;
  for (const auto& worker : plan.workers()) {
    const auto own = share_of(context.micro_batches, worker.replica, plan.replicas);
    const WorkerShape shape{worker, plan.stage_count(), plan.replicas, plan.all_reduce, clip};
    builder.add(shape, training_step(shape, indices(own)));
    own_counts.push_back(own.size());
  }
  auto program = builder.take();
  for (std::size_t w = 0; w < own_counts.size(); ++w)
    count_removes(program.workers[w], own_counts[w]);
  return program;
}

}  // namespace funcpipe::sim
