// Runs a task list on three lanes: the compute lane on the calling thread, uplink and downlink on
// threads of its own.
#pragma once

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "schedule/task.h"

namespace funcpipe {

// Each lane performs its tasks in list order, each once all tasks it comes after are complete. The
// first task that throws stops the run: the stop token handed to `perform` is triggered, so that
// waiting tasks of the other lanes end, and run() rethrows that first exception after all lanes
// have come to rest. One run at a time; the threads live as long as the object.
class LaneExecutor {
 public:
  // Called on the lane's thread.
  using Perform = std::function<void(const Task& task, std::stop_token stop)>;

  LaneExecutor();
  ~LaneExecutor();
  LaneExecutor(const LaneExecutor&) = delete;
  LaneExecutor& operator=(const LaneExecutor&) = delete;

  // Throws Error(kCancelled) when `stop` is requested before the list is complete.
  void run(const TaskList& tasks, const Perform& perform, std::stop_token stop = {});

 private:
  struct Run {
    const TaskList* tasks;
    const Perform* perform;
    std::stop_source stop;
    std::vector<char> complete;
    std::exception_ptr error;
    int lanes_left = kLaneCount;
  };

  void serve(Lane lane);
  void work(Run& run, Lane lane);
  bool wait_until_ready(Run& run, const Task& task);
  void finish_task(Run& run, std::size_t index, std::exception_ptr error);

  std::mutex mutex_;  // guards all below and the Run in progress
  std::condition_variable changed_;
  Run* current_ = nullptr;
  std::uint64_t generation_ = 0;  // counts runs, so that a lane takes each once
  bool closing_ = false;
  std::array<std::jthread, 2> threads_;
};

}  // namespace funcpipe
