#include "store/wait.h"

#include "base/error.h"

namespace funcpipe {

std::optional<Buffer> try_wait_for(ObjectStore& store, std::string_view key,
                                   const WaitOptions& options) {
  Backoff backoff(options.backoff);
  while (true) {
    if (options.stop.stop_requested())
      fail(ErrorCode::kCancelled, "stopped while waiting for '{}'", key);
    if (auto object = store.get(key)) return object;
    if (options.deadline.expired(options.clock)) return std::nullopt;
    const auto pause = std::min(backoff.next(), options.deadline.remaining(options.clock));
    options.clock.sleep_for(pause, options.stop);
  }
}

Buffer wait_for(ObjectStore& store, std::string_view key, const WaitOptions& options) {
  const auto begin = options.clock.now();
  if (auto object = try_wait_for(store, key, options)) return std::move(*object);
  fail(ErrorCode::kDeadlineExceeded, "'{}' did not appear in the store within {}", key,
       format_duration(options.clock.now() - begin));
}

}  // namespace funcpipe
