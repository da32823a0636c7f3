#include "data/parallel.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace funcpipe {
namespace {

TEST(ForEachInParallel, EveryIndexOnce) {
  for (const std::size_t count : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    for_each_in_parallel(count, 4, [&](std::size_t i) { ++calls[i]; });
    for (const auto& called : calls) EXPECT_EQ(called, 1);
  }
}

TEST(ForEachInParallel, AtMostSoManyAtOnce) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  for_each_in_parallel(40, 3, [&](std::size_t) {
    const int running = ++now;
    for (int seen = most; running > seen && !most.compare_exchange_weak(seen, running);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --now;
  });
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 3);
}

TEST(ForEachInParallel, AFailureEndsItAndIsRethrown) {
  std::atomic<int> calls{0};
  EXPECT_THROW(for_each_in_parallel(1'000'000, 4,
                                    [&](std::size_t i) {
                                      ++calls;
                                      if (i == 5) throw std::runtime_error("five");
                                    }),
               std::runtime_error);
  EXPECT_LT(calls, 1'000'000);
}

}  // namespace
}  // namespace funcpipe
