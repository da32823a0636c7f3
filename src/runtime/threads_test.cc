#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/background_queue.h"
#include "runtime/batch_loader.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

TensorBundle numbered(int number) {
  TensorBundle bundle;
  TensorView view;
  view.shape = {number};
  bundle.tensors.push_back(view);
  return bundle;
}

TEST(BackgroundQueue, PerformsJobsInOrderAndFinishWaitsForThem) {
  std::vector<int> done;
  BackgroundQueue queue(4);
  for (int i = 0; i < 100; ++i) queue.post([&done, i] { done.push_back(i); });
  queue.finish();
  ASSERT_EQ(done.size(), 100U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(BackgroundQueue, AFailureComesOutOfTheNextCall) {
  BackgroundQueue queue;
  queue.post([] { fail(ErrorCode::kUnavailable, "store is gone"); });
  EXPECT_THROW(queue.finish(), Error);
  EXPECT_THROW(queue.post([] {}), Error);
}

TEST(BatchLoader, ReadsAheadAsFarAsAllowedAndKeepsTheOrder) {
  std::atomic<int> read{0};
  BatchLoader loader(
      [&]() -> std::optional<TensorBundle> {
        return read < 20 ? std::optional(numbered(read++)) : std::nullopt;
      },
      3);
  const auto limit = std::chrono::steady_clock::now() + 5s;
  while (read < 4 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(read, 4);  // three ready, one in hand
  for (int i = 0; i < 20; ++i) EXPECT_EQ(loader.take({}).tensors[0].shape[0], i);
  EXPECT_THROW(loader.take({}), Error);
}

TEST(BatchLoader, AFailureOfTheSourceComesAfterWhatWasRead) {
  int read = 0;
  BatchLoader loader(
      [&]() -> std::optional<TensorBundle> {
        if (read == 2) fail(ErrorCode::kDataLoss, "shard 7 is damaged");
        return numbered(read++);
      },
      8);
  loader.take({});
  loader.take({});
  try {
    loader.take({});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "shard 7 is damaged");
  }
}

TEST(BatchLoader, AWaitingTakeEndsOnStop) {
  std::stop_source stop;
  std::atomic<bool> release{false};
  BatchLoader loader(
      [&]() -> std::optional<TensorBundle> {
        while (!release) std::this_thread::sleep_for(1ms);
        return std::nullopt;
      },
      1);
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_THROW(loader.take(stop.get_token()), Error);
  release = true;
}

}  // namespace
}  // namespace funcpipe
