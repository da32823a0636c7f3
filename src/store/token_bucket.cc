#include "store/token_bucket.h"

#include <algorithm>
#include <cmath>

namespace funcpipe {
namespace {
// A transfer that begins within this time after the link became free follows without a gap: it was
// only woken late.
constexpr auto kSlack = std::chrono::milliseconds(2);
}  // namespace

void TokenBucket::transfer(std::uint64_t bytes) {
  if (std::isinf(bytes_per_second_) || bytes == 0) return;
  TimePoint end;
  {
    std::lock_guard lock(mutex_);
    const auto now = clock_.now();
    const auto begin = now - free_at_ > kSlack ? now : free_at_;
    end = begin + from_seconds(static_cast<double>(bytes) / bytes_per_second_);
    free_at_ = end;
  }
  if (end > clock_.now()) clock_.sleep_until(end, {});
}

}  // namespace funcpipe
