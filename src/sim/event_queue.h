// The simulator's agenda.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/error.h"
#include "sim/sim_time.h"

namespace funcpipe::sim {

// Enumerators in the order in which events of one time happen: a message that is complete at a time
// is seen by a look at that time.
enum class EventKind : std::uint8_t {
  kTransferred,  // a shared link may have moved a transfer's last byte; `lane` says which link
  kEnd,          // of the task on a lane
  kRound,        // a worker begins its next step
  kAsk,          // a request comes to the store's gate
  kAnswer,       // a request's latency is over
};

struct Event {
  SimTime time{};
  EventKind kind{};
  std::uint32_t worker = 0;
  std::uint8_t lane = 0;  // kBackgroundLane: removal of messages
};

// Events of equal time in the order (kind, worker, lane, order of push). An event takes 16 bytes.
class EventQueue {
 public:
  static constexpr std::uint32_t kMostWorkers = 1U << 26;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  std::uint64_t pushed() const { return pushed_; }

  // Throws Error(kInvalidArgument) beyond the longest run.
  void push(const Event& event) {
    if (event.time > kLongestRun) {
      fail(ErrorCode::kInvalidArgument, "the simulated run takes more than {} s",
           in_seconds(kLongestRun));
    }
    const std::uint64_t order = static_cast<std::uint64_t>(event.kind) << 61 |
                                static_cast<std::uint64_t>(event.worker) << 35 |
                                static_cast<std::uint64_t>(event.lane) << 33 |
                                (pushed_++ & 0x1'ffff'ffffULL);
    heap_.push({event.time.count(), order});
  }

  // Precondition: not empty.
  Event pop() {
    const Entry entry = heap_.top();
    heap_.pop();
    return {SimTime(entry.time), static_cast<EventKind>(entry.order >> 61),
            static_cast<std::uint32_t>(entry.order >> 35) & (kMostWorkers - 1),
            static_cast<std::uint8_t>(entry.order >> 33 & 3)};
  }

 private:
  struct Entry {
    std::int64_t time;
    std::uint64_t order;
    bool operator<(const Entry& other) const {  // the heap's top is its largest
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  std::priority_queue<Entry> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace funcpipe::sim
