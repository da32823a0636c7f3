#include "sim/shared_link.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace funcpipe::sim {
namespace {

// Bytes that may be missing at a transfer's end: what moves in a picosecond, to which times are
// rounded, and what the clock's rounding hides.
double tolerance(double rate, double moved) { return 1e-3 + 1e-12 * (rate + moved); }

}  // namespace

SharedLink::Group& SharedLink::group_of(double own_rate) {
  const auto at = std::lower_bound(groups_.begin(), groups_.end(), own_rate,
                                   [](const Group& g, double rate) { return g.own_rate < rate; });
  if (at != groups_.end() && at->own_rate == own_rate) return *at;
  return *groups_.insert(at, Group{own_rate, 0, 0, {}});
}

void SharedLink::advance(SimTime now) {
  const double seconds = in_seconds(now - now_);
  now_ = now;
  for (auto& group : groups_) {
    if (group.transfers.empty()) {
      group.moved = 0;
    } else {
      group.moved += group.rate * seconds;
    }
  }
}

// The slowest links first: what they leave of their equal share is for the others.
void SharedLink::share() {
  double capacity = capacity_;
  std::size_t transfers = 0;
  for (const auto& group : groups_) transfers += group.transfers.size();
  for (auto& group : groups_) {
    const auto count = group.transfers.size();
    if (count == 0) continue;
    group.rate = std::min(group.own_rate, capacity / static_cast<double>(transfers));
    capacity -= group.rate * static_cast<double>(count);
    transfers -= count;
  }
}

void SharedLink::begin(SimTime now, std::uint64_t id, double bytes, double own_bytes_per_second) {
  advance(now);
  auto& group = group_of(own_bytes_per_second);
  group.transfers.push({group.moved + bytes, id});
  share();
}

std::optional<SimTime> SharedLink::next_end() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& group : groups_) {
    if (group.transfers.empty()) continue;
    least = std::min(least, (group.transfers.top().end - group.moved) / group.rate);
  }
  if (std::isinf(least)) return std::nullopt;
  return now_ + sim_time(std::max(0.0, least));
}

std::vector<std::uint64_t> SharedLink::finished(SimTime now) {
  advance(now);
  std::vector<std::uint64_t> ids;
  for (auto& group : groups_) {
    while (!group.transfers.empty() &&
           group.transfers.top().end <= group.moved + tolerance(group.rate, group.moved)) {
      ids.push_back(group.transfers.top().id);
      group.transfers.pop();
    }
  }
  std::sort(ids.begin(), ids.end());
  share();
  return ids;
}

}  // namespace funcpipe::sim
