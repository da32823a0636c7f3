// One direction of a store's bandwidth, shared by transfers that are each limited by their own
// function's link too.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "sim/sim_time.h"

namespace funcpipe::sim {

// Max-min fair: every transfer gets as much as its own limit allows, but never more than the level
// at which all of them together use the capacity.
//
// Transfers of the same own limit have the same rate at any time, so a group of them needs one
// clock: the bytes each of its transfers has moved. A transfer that starts when the group's clock
// shows x ends when it shows x + its bytes, whatever the rates are in between. There are as many
// groups as there are different links in a plan, few: a change costs O(groups + log transfers).
class SharedLink {
 public:
  explicit SharedLink(double bytes_per_second) : capacity_(bytes_per_second) {}

  // `id` comes out of finished() when the bytes have moved. Times never decrease from call to call.
  void begin(SimTime now, std::uint64_t id, double bytes, double own_bytes_per_second);
  // When the next transfer ends if none begins before; nothing when there are none.
  std::optional<SimTime> next_end() const;
  // The transfers that end at `now`, in the order of ids.
  std::vector<std::uint64_t> finished(SimTime now);

 private:
  struct Transfer {
    double end;  // on the group's clock
    std::uint64_t id;
    bool operator<(const Transfer& other) const {  // the first to end is the heap's largest
      return end != other.end ? end > other.end : id > other.id;
    }
  };
  struct Group {
    double own_rate;
    double rate = 0;
    double moved = 0;  // the group's clock
    std::priority_queue<Transfer> transfers;
  };

  Group& group_of(double own_rate);
  void advance(SimTime now);
  void share();

  const double capacity_;
  SimTime now_{};
  std::vector<Group> groups_;  // increasing own rate
};

}  // namespace funcpipe::sim
