// A store that fails now and then, for tests of whoever must cope with it.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/rng.h"
#include "store/forwarding_store.h"

namespace funcpipe {

// What may happen to one operation; probabilities in [0, 1].
struct Faults {
  double refused = 0;  // a retryable Error(kUnavailable), and nothing was done
  double lost = 0;     // the same error, but it was done: the answer was lost
  double delayed = 0;  // it begins `delay` late
  Duration delay{};
};

struct FaultOptions {
  Faults put, put_if_absent, get, head, list, remove;  // get: get_range as well
  std::uint64_t seed = 0;

  static FaultOptions for_all(const Faults& faults, std::uint64_t seed) {
    return {faults, faults, faults, faults, faults, faults, seed};
  }
};

// Thread-safe. Calls that come one after the other meet the same faults in every run.
class FaultStore : public ForwardingStore {
 public:
  FaultStore(ObjectStore& base, const FaultOptions& options, Clock& clock);
  FaultStore(std::unique_ptr<ObjectStore> base, const FaultOptions& options, Clock& clock);

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  struct Fate {
    bool refused, lost, delayed;
  };
  Fate draw(const Faults& faults);
  template <typename Call>
  auto suffer(const Faults& faults, std::string_view key, Call call);

  const FaultOptions options_;
  Clock& clock_;
  std::mutex mutex_;
  Rng rng_;
};

}  // namespace funcpipe
