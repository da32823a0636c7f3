// Tries again what failed for a reason that may pass.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/backoff.h"
#include "base/clock.h"
#include "store/forwarding_store.h"

namespace funcpipe {

struct RetryOptions {
  BackoffOptions backoff{std::chrono::milliseconds(20), std::chrono::seconds(5), 2, 1};
  int most_tries = 8;                          // of one call
  Duration budget = std::chrono::seconds(60);  // of one call; no try begins after it
  std::uint64_t seed =
      0;  // of the jitter: different in each process, so that they do not march in step
};

// Only errors that say retryable() are met with another try; the last one is rethrown, with the
// number of tries in its text. Thread-safe.
//
// An answer may have been lost, so that a try finds its predecessor's work. put_if_absent gives
// kStored when a later try finds exactly its own bytes under the key: writers of equal bytes may
// then both be told kStored, never writers of different ones. A remove that was tried twice may
// give false for what it removed itself.
class RetryingStore : public ForwardingStore {
 public:
  RetryingStore(ObjectStore& base, const RetryOptions& options, Clock& clock)
      : ForwardingStore(base), options_(options), clock_(clock) {}
  RetryingStore(std::unique_ptr<ObjectStore> base, const RetryOptions& options, Clock& clock)
      : ForwardingStore(std::move(base)), options_(options), clock_(clock) {}

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  // Calls call(number of this try, from 1) until it does not throw.
  template <typename Call>
  auto persist(Call call);
  bool holds(std::string_view key, std::span<const ByteView> parts);

  const RetryOptions options_;
  Clock& clock_;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace funcpipe
