// The parts of the simulator by themselves.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "core/batching.h"
#include "schedule/step_schedule.h"
#include "sim/engine.h"

namespace funcpipe::sim {
namespace {

using namespace std::chrono_literals;

TEST(EventQueue, OrdersByTimeKindWorkerLaneAndPush) {
  EventQueue queue;
  queue.push({SimTime(7), EventKind::kAnswer, 0, 0});
  queue.push({SimTime(7), EventKind::kEnd, 900'000, 2});
  queue.push({SimTime(7), EventKind::kEnd, 900'000, 1});
  queue.push({SimTime(7), EventKind::kEnd, 5, 3});
  queue.push({SimTime(6), EventKind::kAnswer, 9, 1});
  std::vector<std::uint32_t> workers;
  std::vector<int> lanes;
  while (!queue.empty()) {
    const auto event = queue.pop();
    workers.push_back(event.worker);
    lanes.push_back(event.lane);
  }
  EXPECT_THAT(workers, testing::ElementsAre(9, 5, 900'000, 900'000, 0));
  EXPECT_THAT(lanes, testing::ElementsAre(1, 3, 1, 2, 0));
}

TEST(PollSequence, BeginsAnewAfterTheLookForAStop) {
  SimulationOptions options;
  options.stop_check = 1s;
  options.backoff = {300ms, 400ms, 2, 0};
  PollSequence poll(options, SimTime(0));
  std::vector<std::int64_t> asked;
  for (int i = 0; i < 7; ++i) {
    asked.push_back(poll.asked() / SimTime(1ms));
    poll.miss(poll.asked() + SimTime(100ms), 100ms);
  }
  // The request at 1000 is the last before the look, which takes from 1100 to 1200.
  EXPECT_THAT(asked, testing::ElementsAre(0, 400, 900, 1000, 1200, 1600, 2100));
  EXPECT_EQ(poll.misses(), 7U);
  EXPECT_EQ(poll.heads(), 1U);
}

struct Transfer {
  double begin, bytes, own_rate;
};

// Max-min fair sharing the slow and plain way: the rates of all transfers anew at every change.
std::vector<double> reference_ends(const std::vector<Transfer>& transfers, double capacity) {
  std::vector<double> left, ends(transfers.size(), -1);
  for (const auto& transfer : transfers) left.push_back(transfer.bytes);
  double now = 0;
  while (true) {
    std::vector<std::size_t> active;
    double next = 1e300;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (ends[i] >= 0) continue;
      if (transfers[i].begin > now) {
        next = std::min(next, transfers[i].begin);
      } else {
        active.push_back(i);
      }
    }
    std::sort(active.begin(), active.end(),
              [&](auto a, auto b) { return transfers[a].own_rate < transfers[b].own_rate; });
    double rest = capacity;
    std::vector<double> rates(transfers.size(), 0);
    for (std::size_t k = 0; k < active.size(); ++k) {
      const auto i = active[k];
      rates[i] = std::min(transfers[i].own_rate, rest / static_cast<double>(active.size() - k));
      rest -= rates[i];
      next = std::min(next, now + left[i] / rates[i]);
    }
    if (next == 1e300) return ends;
    for (const auto i : active) {
      left[i] -= rates[i] * (next - now);
      if (left[i] < 1e-3) ends[i] = next;
    }
    now = next;
  }
}

std::vector<double> simulated_ends(const std::vector<Transfer>& transfers, double capacity) {
  SharedLink link(capacity);
  std::vector<double> ends(transfers.size(), -1);
  const auto finish_until = [&](SimTime time) {
    while (const auto end = link.next_end()) {
      if (*end > time) return;
      for (const auto id : link.finished(*end)) ends[id] = in_seconds(*end);
    }
  };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const auto begin = sim_time(transfers[i].begin);
    finish_until(begin);
    link.begin(begin, i, transfers[i].bytes, transfers[i].own_rate);
  }
  finish_until(SimTime::max());
  return ends;
}

TEST(SharedLink, IsMaxMinFair) {
  Rng rng(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<Transfer> transfers(1 + rng.below(30));
    double begin = 0;
    for (auto& transfer : transfers) {
      begin += 0.1 * rng.uniform();
      transfer = {begin, 1000 + 1e6 * rng.uniform(), 1e6 * static_cast<double>(1 + rng.below(4))};
    }
    const double capacity = 1e6 + 1e7 * rng.uniform();
    const auto expected = reference_ends(transfers, capacity);
    const auto got = simulated_ends(transfers, capacity);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-7) << round;
  }
}

// Rates at which a picosecond is many bytes, sizes at which a double is less than a byte.
TEST(SharedLink, EndsAtAnyRate) {
  for (const double rate : {1e-3, 1.0, 1e9, 1e15}) {
    for (const double bytes : {0.0, 1.0, 1e9, 1e14}) {
      if (bytes / rate > 1e5) continue;
      const auto ends = simulated_ends({{0, bytes, rate}, {0, bytes, rate}}, 1.5 * rate);
      EXPECT_NEAR(ends[0], bytes / (0.75 * rate), 1e-2 / rate + 1e-9 * bytes / rate + 1e-11);
    }
  }
}

class EngineTest : public testing::Test {
 protected:
  EngineTest() {
    StageCosts costs;
    costs.forward_seconds = costs.backward_seconds = 1;
    costs.uplink_bytes_per_second = costs.downlink_bytes_per_second = 1;
    stages_.assign(2, costs);
  }

  // Two stages, two micro-batches; the second stage without its task `missing`.
  Program program(std::size_t missing) {
    ProgramBuilder builder(context_, 2, 1);
    for (int stage = 0; stage < 2; ++stage) {
      const WorkerShape shape{{stage, 0}, 2, 1};
      auto tasks = training_step(shape, {0, 1});
      if (stage == 1 && missing < tasks.size()) {
        const auto erased = static_cast<int>(missing);
        tasks.erase(tasks.begin() + erased);
        for (auto& task : tasks) {
          std::erase(task.after, erased);
          for (auto& index : task.after) index -= index > erased ? 1 : 0;
        }
      }
      builder.add(shape, tasks);
    }
    return builder.take();
  }

  History run(const Program& program) {
    const std::vector<WorkerLinks> links(2, {SimTime(0), 1, 1, SimTime(0)});
    return Engine({&program, &program}, links, options_).run();
  }

  std::vector<StageCosts> stages_;
  SimulationOptions options_;
  StepContext context_{stages_, split_mini_batch(2, 1), 1, options_};
};

TEST_F(EngineTest, RunsWholeSchedules) {
  const auto whole = program(1000);
  const auto history = run(whole);
  for (const auto& record : history.records) EXPECT_GE(record.end, record.begin);
  EXPECT_EQ(history.steps[1].end, 2 * history.steps[0].end);
}

TEST_F(EngineTest, NamesWhatWouldWaitForEver) {
  const auto shape = WorkerShape{{1, 0}, 2, 1};
  const auto tasks = training_step(shape, {0, 1});
  const auto sends = std::find_if(tasks.begin(), tasks.end(), [](const Task& task) {
    return task.kind == TaskKind::kSendGradient && task.micro_batch == 1;
  });
  const auto broken = program(static_cast<std::size_t>(sends - tasks.begin()));
  for (const double rate : {0.0, 100.0}) {
    for (const auto waiting : {Waiting::kIdeal, Waiting::kPolling}) {
      options_.waiting = waiting;
      options_.store.requests_per_second = rate;
      try {
        run(broken);
        FAIL() << "ended";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInternal);
        EXPECT_STREQ(error.what(),
                     "simulation: worker 0.0 would wait for ever at task 6 (receive gradient 1) of "
                     "step 0");
      }
    }
  }
}

}  // namespace
}  // namespace funcpipe::sim
