#include "schedule/lane_executor.h"

#include <atomic>
#include <chrono>
#include <set>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "schedule/step_schedule.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

TEST(LaneExecutor, KeepsLaneOrderAndDependencies) {
  LaneExecutor executor;
  const auto tasks = training_step({{1, 0}, 3, 2}, {0, 1, 2, 3, 4, 5});
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    std::vector<std::size_t> order;
    executor.run(tasks, [&](const Task& task, std::stop_token) {
      std::lock_guard lock(mutex);
      order.push_back(static_cast<std::size_t>(&task - tasks.data()));
    });
    ASSERT_EQ(order.size(), tasks.size());
    std::set<int> done;
    std::array<std::size_t, kLaneCount> last{};
    for (const auto index : order) {
      for (const int before : tasks[index].after) ASSERT_TRUE(done.contains(before));
      auto& previous = last[static_cast<std::size_t>(tasks[index].lane())];
      ASSERT_GE(index, previous);
      previous = index;
      done.insert(static_cast<int>(index));
    }
  }
}

TEST(LaneExecutor, LanesOverlap) {
  LaneExecutor executor;
  const TaskList tasks = {{TaskKind::kForward, 0, -1, {}},
                          {TaskKind::kSendActivation, 0, -1, {}},
                          {TaskKind::kReceiveGradient, 0, -1, {}}};
  std::atomic<int> together{0};
  executor.run(tasks, [&](const Task&, std::stop_token) {
    ++together;
    const auto limit = std::chrono::steady_clock::now() + 5s;
    while (together < 3 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    EXPECT_EQ(together, 3);
  });
}

TEST(LaneExecutor, FirstErrorCancelsTheOthersAndIsRethrown) {
  LaneExecutor executor;
  SteadyClock clock;
  const TaskList tasks = {{TaskKind::kReceiveActivation, 0, -1, {}},
                          {TaskKind::kForward, 0, -1, {0}},
                          {TaskKind::kSendGradient, 1, -1, {}}};
  for (int round = 0; round < 20; ++round) {
    const auto begin = clock.now();
    try {
      executor.run(tasks, [&](const Task& task, std::stop_token stop) {
        if (task.kind == TaskKind::kSendGradient) fail(ErrorCode::kUnavailable, "no store");
        clock.sleep_for(30s, stop);
        if (stop.stop_requested()) fail(ErrorCode::kCancelled, "cancelled");
      });
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "no store");
    }
    EXPECT_LT(clock.now() - begin, 10s);
  }
  executor.run(tasks, [](const Task&, std::stop_token) {});  // usable again
}

TEST(LaneExecutor, StopsOnRequest) {
  LaneExecutor executor;
  SteadyClock clock;
  std::stop_source source;
  std::jthread stopper([&] { source.request_stop(); });
  const TaskList tasks = {{TaskKind::kReceiveActivation, 0, -1, {}},
                          {TaskKind::kForward, 0, -1, {0}}};
  try {
    executor.run(
        tasks, [&](const Task&, std::stop_token stop) { clock.sleep_for(30s, stop); },
        source.get_token());
    FAIL() << "not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace funcpipe
