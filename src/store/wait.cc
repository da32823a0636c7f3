#include "store/wait.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"

namespace funcpipe {
namespace {

void check_stop(std::string_view key, const std::stop_token& stop) {
  if (stop.stop_requested()) fail(ErrorCode::kCancelled, "the wait for '{}' was stopped", key);
}

}  // namespace

std::optional<Buffer> try_wait_for(ObjectStore& store, std::string_view key,
                                   const WaitOptions& options) {
  Backoff backoff(options.backoff, checksum(as_bytes(key)));
  while (true) {
    check_stop(key, options.stop);
    // Taken before the get, so that the last get begins at or after the deadline.
    const auto now = options.clock.now();
    if (auto object = store.get(key)) return object;
    if (now >= options.deadline.time()) return std::nullopt;
    const auto next = Clock::later(options.clock.now(), backoff.next());
    options.clock.sleep_until(std::min(next, options.deadline.time()), options.stop);
  }
}

Buffer wait_for(ObjectStore& store, std::string_view key, const WaitOptions& options) {
  const auto begin = options.clock.now();
  if (auto object = try_wait_for(store, key, options)) return std::move(*object);
  fail(ErrorCode::kDeadlineExceeded, "'{}' did not appear in the store within {}", key,
       format_duration(options.clock.now() - begin));
}

}  // namespace funcpipe
