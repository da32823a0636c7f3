#include "schedule/lane_executor.h"

#include "base/error.h"

namespace funcpipe {

LaneExecutor::LaneExecutor()
    : threads_{std::jthread([this] { serve(Lane::kUplink); }),
               std::jthread([this] { serve(Lane::kDownlink); })} {}

LaneExecutor::~LaneExecutor() {
  std::lock_guard lock(mutex_);
  closing_ = true;
  changed_.notify_all();
}

void LaneExecutor::run(const TaskList& tasks, const Perform& perform, std::stop_token stop) {
  Run run{&tasks, &perform, {}, std::vector<char>(tasks.size(), 0), nullptr, kLaneCount};
  const std::stop_callback forward(stop, [&] {
    run.stop.request_stop();
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  {
    std::lock_guard lock(mutex_);
    current_ = &run;
    ++generation_;
    changed_.notify_all();
  }
  work(run, Lane::kCompute);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return run.lanes_left == 0; });
  current_ = nullptr;
  if (run.error) std::rethrow_exception(run.error);
  if (run.stop.stop_requested()) fail(ErrorCode::kCancelled, "stopped on request");
}

void LaneExecutor::serve(Lane lane) {
  std::uint64_t seen = 0;
  while (true) {
    Run* run = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || (current_ != nullptr && generation_ != seen); });
      if (closing_) return;
      seen = generation_;
      run = current_;
    }
    work(*run, lane);
  }
}

void LaneExecutor::work(Run& run, Lane lane) {
  const auto& tasks = *run.tasks;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].lane() != lane) continue;
    if (!wait_until_ready(run, tasks[i])) break;
    std::exception_ptr error;
    try {
      (*run.perform)(tasks[i], run.stop.get_token());
    } catch (...) {
      error = std::current_exception();
    }
    finish_task(run, i, error);
    if (error) break;
  }
  std::lock_guard lock(mutex_);
  --run.lanes_left;
  changed_.notify_all();
}

bool LaneExecutor::wait_until_ready(Run& run, const Task& task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    if (run.stop.stop_requested()) return true;
    for (const int before : task.after) {
      if (!run.complete[static_cast<std::size_t>(before)]) return false;
    }
    return true;
  });
  return !run.stop.stop_requested();
}

void LaneExecutor::finish_task(Run& run, std::size_t index, std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (error) {
      if (!run.error) run.error = error;
    } else {
      run.complete[index] = 1;
    }
    changed_.notify_all();
  }
  if (error) {
    run.stop.request_stop();  // outside the lock: it runs the callbacks of waiting tasks
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
}

}  // namespace funcpipe
