// A store behind links of limited bandwidth and a request latency, as a function sees it.
#pragma once

#include "store/forwarding_store.h"
#include "store/token_bucket.h"

namespace funcpipe {

// The links of one function, shared by all its stores. Up and down are independent (full duplex).
struct FunctionLinks {
  FunctionLinks(double uplink_bytes_per_second, double downlink_bytes_per_second,
                Duration request_latency, Clock& time)
      : uplink(uplink_bytes_per_second, time),
        downlink(downlink_bytes_per_second, time),
        latency(request_latency),
        clock(time) {}
  TokenBucket uplink, downlink;
  const Duration latency;  // added to every request; concurrent requests overlap
  Clock& clock;
};

// Thread-safe. A put becomes visible when its last byte has been sent; a get returns when its last
// byte has come.
class ThrottledStore : public ForwardingStore {
 public:
  // `links` outlives the store.
  ThrottledStore(ObjectStore& base, FunctionLinks& links) : ForwardingStore(base), links_(links) {}
  ThrottledStore(std::unique_ptr<ObjectStore> base, FunctionLinks& links)
      : ForwardingStore(std::move(base)), links_(links) {}

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  void wait_latency();
  std::optional<Buffer> received(std::optional<Buffer> object, TimePoint begin);

  FunctionLinks& links_;
};

}  // namespace funcpipe
