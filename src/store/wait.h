// The one way to wait for an object: get it, and when it is not there, get it again after a growing
// delay. Never by listing, which costs many times a get.
#pragma once

#include <optional>
#include <stop_token>
#include <string_view>

#include "base/backoff.h"
#include "base/clock.h"
#include "store/object_store.h"

namespace funcpipe {

struct WaitOptions {
  BackoffOptions backoff;
  Deadline deadline;
  Clock& clock;
  std::stop_token stop = {};
};

// The object under `key` as soon as it is there; nothing when it is still missing at the deadline.
// Looks at least once, and once more at the deadline. Throws Error(kCancelled) when stop is
// requested, and what the store throws.
std::optional<Buffer> try_wait_for(ObjectStore& store, std::string_view key,
                                   const WaitOptions& options);

// The same, but throws Error(kDeadlineExceeded) at the deadline, naming the key and how long it was
// waited for.
Buffer wait_for(ObjectStore& store, std::string_view key, const WaitOptions& options);

}  // namespace funcpipe
