// The one way to wait for an object: ask for it, one round trip a try, with growing pauses. Never
// by listing.
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
  std::stop_token stop;
};

// The object, or nothing when the deadline comes first (it is asked for at least once).
// Throws Error(kCancelled) when `stop` is requested.
std::optional<Buffer> try_wait_for(ObjectStore& store, std::string_view key,
                                   const WaitOptions& options);
// Throws Error(kDeadlineExceeded) naming the key instead.
Buffer wait_for(ObjectStore& store, std::string_view key, const WaitOptions& options);

}  // namespace funcpipe
