#include "collective/all_reduce.h"

#include <cstring>

#include "base/error.h"
#include "schedule/all_reduce_schedule.h"

namespace funcpipe {
namespace {

MessageName split_name(const AllReduceContext& context, int from, int to) {
  return {MessageName::Phase::kTraining, context.step,       MessageKind::kSplit, -1,
          {context.stage, from},         {context.stage, to}};
}

MessageName merged_name(const AllReduceContext& context, int owner) {
  return {MessageName::Phase::kTraining, context.step,       MessageKind::kMerged, -1,
          {context.stage, owner},        {context.stage, -1}};
}

}  // namespace

AllReduce::AllReduce(Mailbox& mailbox, const AllReduceContext& context, std::span<float> values)
    : mailbox_(mailbox),
      context_(context),
      values_(values),
      parts_(static_cast<std::size_t>(context.ranks)) {}

std::span<float> AllReduce::split(int index) const {
  const auto range = split_range(values_.size(), index, context_.ranks);
  return values_.subspan(range.first, range.count);
}

void AllReduce::perform(const Task& task, std::stop_token stop) {
  switch (task.kind) {
    case TaskKind::kSendSplit:
      mailbox_.send_values(split_name(context_, context_.rank, task.peer), split(task.peer));
      return;
    case TaskKind::kReceiveSplit:
      return receive_split(task.peer, std::move(stop));
    case TaskKind::kReduceSplit:
      return reduce();
    case TaskKind::kSendMerged:
      return mailbox_.send_or_adopt_values(merged_name(context_, context_.rank),
                                           split(context_.rank));
    case TaskKind::kReceiveMerged:
      return mailbox_.receive_values(merged_name(context_, task.peer), split(task.peer),
                                     context_.deadline, std::move(stop));
    default:
      fail(ErrorCode::kInternal, "'{}' is not a task of an all-reduce", describe(task));
  }
}

void AllReduce::receive_split(int peer, std::stop_token stop) {
  auto& part = parts_[static_cast<std::size_t>(peer)];
  part.resize(split(context_.rank).size());
  mailbox_.receive_values(split_name(context_, peer, context_.rank), part, context_.deadline,
                          std::move(stop));
}

void AllReduce::reduce() {
  auto own = split(context_.rank);
  const auto part_of = [&](int rank) {
    return std::span<const float>(parts_[static_cast<std::size_t>(rank)]);
  };
  // Rank order: ((p0 + p1) + p2) + ..., with our own part in its place.
  std::vector<float> sum;
  if (context_.rank > 0) {
    sum.assign(part_of(0).begin(), part_of(0).end());
    for (int rank = 1; rank < context_.rank; ++rank) {
      const auto part = part_of(rank);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    for (std::size_t i = 0; i < sum.size(); ++i) own[i] = sum[i] + own[i];
  }
  for (int rank = context_.rank + 1; rank < context_.ranks; ++rank) {
    const auto part = part_of(rank);
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += part[i];
  }
  for (auto& part : parts_) part = {};
}

void AllReduce::remove_messages(Mailbox& mailbox, const AllReduceContext& context) {
  for (int rank = 0; rank < context.ranks; ++rank) {
    if (rank != context.rank) mailbox.remove(split_name(context, rank, context.rank));
  }
  mailbox.remove(merged_name(context, context.rank));
}

void all_reduce(AllReduceAlgorithm algorithm, Mailbox& mailbox, const AllReduceContext& context,
                std::span<float> values, LaneExecutor& lanes, std::stop_token stop) {
  AllReduce reduction(mailbox, context, values);
  lanes.run(
      all_reduce_tasks(algorithm, context.rank, context.ranks),
      [&](const Task& task, std::stop_token token) { reduction.perform(task, std::move(token)); },
      std::move(stop));
}

}  // namespace funcpipe
