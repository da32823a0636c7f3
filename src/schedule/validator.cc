#include "schedule/validator.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/error.h"

namespace funcpipe {
namespace {

// Kind of the sending task, micro-batch, source, destination (-1: all), enough to tell messages of
// one step apart.
using Message = std::tuple<TaskKind, int, int, int, int, int>;

std::optional<Message> sent_by(const WorkerShape& shape, const Task& task) {
  const auto [stage, replica] = shape.worker;
  switch (task.kind) {
    case TaskKind::kSendActivation:
      return Message{task.kind, task.micro_batch, stage, replica, stage + 1, replica};
    case TaskKind::kSendGradient:
      return Message{task.kind, task.micro_batch, stage, replica, stage - 1, replica};
    case TaskKind::kSendSplit:
      return Message{task.kind, -1, stage, replica, stage, task.peer};
    case TaskKind::kSendMerged:
      return Message{task.kind, -1, stage, replica, -1, -1};
    case TaskKind::kSendNorm:
      return Message{task.kind, -1, stage, -1, -1, -1};
    default:
      return std::nullopt;
  }
}

std::optional<Message> awaited_by(const WorkerShape& shape, const Task& task) {
  const auto [stage, replica] = shape.worker;
  switch (task.kind) {
    case TaskKind::kReceiveActivation:
      return Message{
          TaskKind::kSendActivation, task.micro_batch, stage - 1, replica, stage, replica};
    case TaskKind::kReceiveGradient:
      return Message{TaskKind::kSendGradient, task.micro_batch, stage + 1, replica, stage, replica};
    case TaskKind::kReceiveSplit:
      return Message{TaskKind::kSendSplit, -1, stage, task.peer, stage, replica};
    case TaskKind::kReceiveMerged:
      return Message{TaskKind::kSendMerged, -1, stage, task.peer, -1, -1};
    case TaskKind::kReceiveNorm:
      return Message{TaskKind::kSendNorm, -1, task.peer, -1, -1, -1};
    default:
      return std::nullopt;
  }
}

class SymbolicRun {
 public:
  explicit SymbolicRun(const std::vector<WorkerTasks>& workers) : workers_(workers) {
    for (const auto& worker : workers_) complete_.emplace_back(worker.tasks.size(), 0);
    next_.assign(workers_.size(), {});
  }

  void check() {
    for (std::size_t w = 0; w < workers_.size(); ++w) check_order(workers_[w]);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        for (int lane = 0; lane < kLaneCount; ++lane)
          progress = advance(w, static_cast<Lane>(lane)) || progress;
      }
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) check_complete(w);
    for (const auto& [message, readers] : sent_) {
      if (readers == 0)
        fail(ErrorCode::kInternal, "schedule: '{}' of stage {} is never received",
             to_string(std::get<0>(message)), std::get<2>(message));
    }
  }

 private:
  static void check_order(const WorkerTasks& worker) {
    for (std::size_t i = 0; i < worker.tasks.size(); ++i) {
      for (const int before : worker.tasks[i].after) {
        if (before < 0 || before >= static_cast<int>(i)) {
          fail(ErrorCode::kInternal,
               "schedule of worker {}: task {} ({}) comes after task {}, which is not earlier",
               worker.shape.worker.text(), i, describe(worker.tasks[i]), before);
        }
      }
    }
  }

  bool ready(std::size_t w, const Task& task) const {
    for (const int before : task.after) {
      if (!complete_[w][static_cast<std::size_t>(before)]) return false;
    }
    const auto message = awaited_by(workers_[w].shape, task);
    return !message || sent_.contains(*message);
  }

  // Performs the next task of a lane if it can start.
  bool advance(std::size_t w, Lane lane) {
    const auto& tasks = workers_[w].tasks;
    auto& next = next_[w][static_cast<std::size_t>(lane)];
    while (next < tasks.size() && tasks[next].lane() != lane) ++next;
    if (next == tasks.size() || !ready(w, tasks[next])) return false;
    const auto& task = tasks[next];
    if (const auto message = sent_by(workers_[w].shape, task);
        message && !sent_.emplace(*message, 0).second) {
      fail(ErrorCode::kInternal, "schedule of worker {}: '{}' is sent twice",
           workers_[w].shape.worker.text(), describe(task));
    }
    if (const auto message = awaited_by(workers_[w].shape, task)) ++sent_[*message];
    complete_[w][next++] = 1;
    return true;
  }

  void check_complete(std::size_t w) const {
    for (std::size_t i = 0; i < complete_[w].size(); ++i) {
      if (!complete_[w][i]) {
        fail(ErrorCode::kInternal, "schedule: worker {} would wait for ever at task {} ({})",
             workers_[w].shape.worker.text(), i, describe(workers_[w].tasks[i]));
      }
    }
  }

  const std::vector<WorkerTasks>& workers_;
  std::vector<std::vector<char>> complete_;
  std::vector<std::array<std::size_t, kLaneCount>> next_;
  std::map<Message, int> sent_;  // -> number of receivers so far
};

}  // namespace

void validate(const std::vector<WorkerTasks>& workers) { SymbolicRun(workers).check(); }

}  // namespace funcpipe
