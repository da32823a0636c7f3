#include "store/token_bucket.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr double kTurnSeconds = 0.010;
// A transfer that begins this soon after the link became free is taken to follow without a gap: the
// time in between went into the work of the store below.
constexpr auto kSlack = std::chrono::milliseconds(2);

}  // namespace

TokenBucket::TokenBucket(double bytes_per_second, Clock& clock)
    : bytes_per_second_(bytes_per_second), clock_(clock), free_at_(clock.now()) {
  if (bytes_per_second > 0) return;
  fail(ErrorCode::kInvalidArgument,
       "a link of {} bytes per second was asked for; use inf for no limit", bytes_per_second);
}

void TokenBucket::transfer(std::uint64_t bytes, TimePoint begin) {
  if (std::isinf(bytes_per_second_)) return;
  const double most = std::max(1.0, bytes_per_second_ * kTurnSeconds);
  for (double rest = static_cast<double>(bytes); rest > 0; rest -= most) {
    const auto end = reserve(std::min(rest, most), begin);
    clock_.sleep_until(end, {});
    note_wake_up(end);
    begin = clock_.now();
  }
}

TimePoint TokenBucket::reserve(double bytes, TimePoint begin) {
  const std::lock_guard lock(mutex_);
  const bool follows = begin - free_at_ <= kSlack + late_;
  free_at_ = Clock::later(follows ? free_at_ : begin, from_seconds(bytes / bytes_per_second_));
  late_ = Duration::zero();
  return free_at_;
}

void TokenBucket::note_wake_up(TimePoint end) {
  const auto late = clock_.now() - end;
  const std::lock_guard lock(mutex_);
  late_ = std::max(late_, Duration(late));
}

}  // namespace funcpipe
