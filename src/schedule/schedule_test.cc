#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "core/batching.h"
#include "schedule/all_reduce_schedule.h"
#include "schedule/step_schedule.h"
#include "schedule/validator.h"

namespace funcpipe {
namespace {

std::vector<WorkerTasks> all_workers(int stages, int replicas, int micro_batches,
                                     AllReduceAlgorithm algorithm, bool clip) {
  std::vector<WorkerTasks> workers;
  const auto all = split_mini_batch(micro_batches, 1);
  for (int stage = 0; stage < stages; ++stage) {
    for (int replica = 0; replica < replicas; ++replica) {
      const WorkerShape shape{{stage, replica}, stages, replicas, algorithm, clip};
      std::vector<int> own;
      for (const auto& micro_batch : share_of(all, replica, replicas))
        own.push_back(micro_batch.index);
      workers.push_back({shape, training_step(shape, own)});
    }
  }
  return workers;
}

TEST(StepSchedule, OneWorkerIsPlainGradientAccumulation) {
  const WorkerShape shape{{0, 0}, 1, 1};
  EXPECT_EQ(print(training_step(shape, {0, 1})),
            "  0 downlink load input 0\n"
            "  1 downlink load target 0\n"
            "  2 compute  forward 0  after 0, 1\n"
            "  3 downlink load input 1\n"
            "  4 downlink load target 1\n"
            "  5 compute  forward 1  after 3, 4\n"
            "  6 compute  backward 1  after 5\n"
            "  7 compute  backward 0  after 2\n"
            "  8 compute  update  after 7\n");
}

TEST(StepSchedule, MiddleStageSendsBothWays) {
  const WorkerShape shape{{1, 0}, 3, 1};
  EXPECT_EQ(print(training_step(shape, {0})),
            "  0 downlink receive activation 0\n"
            "  1 compute  forward 0  after 0\n"
            "  2 uplink   send activation 0  after 1\n"
            "  3 downlink receive gradient 0\n"
            "  4 compute  backward 0  after 1, 3\n"
            "  5 uplink   send gradient 0  after 4\n"
            "  6 compute  update  after 4\n");
}

TEST(StepSchedule, DownloadsRunAheadByTheWindowAndNoFurther) {
  const auto tasks = training_step({{0, 0}, 2, 1}, {0, 1, 2, 3});
  for (const auto& task : tasks) {
    if (task.kind != TaskKind::kLoadInput) continue;
    EXPECT_EQ(task.after.empty(), task.micro_batch < kPrefetch) << describe(task);
  }
}

TEST(AllReduceSchedule, ThreePhaseHasBarriersAndPipelinedHasNone) {
  EXPECT_EQ(print(all_reduce_tasks(AllReduceAlgorithm::kThreePhase, 1, 3)),
            "  0 uplink   send split peer 2\n"
            "  1 uplink   send split peer 0\n"
            "  2 downlink receive split peer 0  after 1\n"
            "  3 downlink receive split peer 2  after 1\n"
            "  4 compute  reduce split  after 2, 3\n"
            "  5 uplink   send merged  after 4\n"
            "  6 downlink receive merged peer 0  after 5, 1\n"
            "  7 downlink receive merged peer 2  after 5, 0\n");
  EXPECT_EQ(print(all_reduce_tasks(AllReduceAlgorithm::kPipelined, 1, 3)),
            "  0 uplink   send split peer 2\n"
            "  1 uplink   send split peer 0\n"
            "  2 downlink receive split peer 0\n"
            "  3 downlink receive split peer 2\n"
            "  4 compute  reduce split  after 2, 3\n"
            "  5 uplink   send merged  after 4\n"
            "  6 downlink receive merged peer 0  after 4, 1\n"
            "  7 downlink receive merged peer 2  after 4, 0\n");
}

TEST(AllReduceSchedule, SplitsPartitionAnyLength) {
  for (const std::size_t values : {0U, 1U, 7U, 64U, 1001U}) {
    for (const int ranks : {1, 2, 3, 5, 64}) {
      std::size_t next = 0;
      for (int i = 0; i < ranks; ++i) {
        const auto range = split_range(values, i, ranks);
        EXPECT_EQ(range.first, next);
        next += range.count;
      }
      EXPECT_EQ(next, values);
    }
  }
}

TEST(Validator, EveryShapeFitsTogether) {
  for (const auto algorithm : {AllReduceAlgorithm::kThreePhase, AllReduceAlgorithm::kPipelined}) {
    for (int stages = 1; stages <= 4; ++stages) {
      for (int replicas = 1; replicas <= 4; ++replicas) {
        for (const int micro_batches : {1, 3, 8}) {
          for (const bool clip : {false, true}) {
            EXPECT_NO_THROW(validate(all_workers(stages, replicas, micro_batches, algorithm, clip)))
                << stages << "x" << replicas << " with " << micro_batches;
          }
        }
      }
    }
  }
}

// Removing any message's task from any worker must be noticed.
TEST(Validator, NoticesEveryMissingMessage) {
  const auto good = all_workers(2, 2, 4, AllReduceAlgorithm::kPipelined, true);
  for (std::size_t w = 0; w < good.size(); ++w) {
    for (std::size_t i = 0; i < good[w].tasks.size(); ++i) {
      if (good[w].tasks[i].lane() == Lane::kCompute) continue;
      if (good[w].tasks[i].kind == TaskKind::kLoadInput ||
          good[w].tasks[i].kind == TaskKind::kLoadTarget)
        continue;
      auto broken = good;
      auto& tasks = broken[w].tasks;
      tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(i));
      for (auto& task : tasks) {
        std::erase(task.after, static_cast<int>(i));
        for (auto& index : task.after) index -= index > static_cast<int>(i) ? 1 : 0;
      }
      // Losing one of several receivers of one object is not a fault of the schedule's messages.
      const auto kind = good[w].tasks[i].kind;
      if (kind == TaskKind::kReceiveNorm ||
          (kind == TaskKind::kReceiveMerged && good[w].shape.replicas > 2))
        continue;
      EXPECT_THROW(validate(broken), Error)
          << describe(good[w].tasks[i]) << " of " << good[w].shape.worker.text();
    }
  }
}

TEST(Validator, NamesTheTaskThatWouldWaitForEver) {
  auto workers = all_workers(2, 1, 2, AllReduceAlgorithm::kPipelined, false);
  workers.pop_back();
  try {
    validate(workers);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("worker 0.0 would wait for ever"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("receive gradient 1"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace funcpipe
