#include "profile/link_probe.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"
#include "store/throttled_store.h"

namespace funcpipe {
namespace {

LinkReport probe(double uplink, double downlink, Duration latency) {
  ManualClock clock;
  FunctionLinks links(uplink, downlink, latency, clock);
  MemoryStore memory;
  ThrottledStore store(memory, links);
  const auto report = probe_links(store, "run/links", clock, {});
  EXPECT_TRUE(list_all(memory, "").empty());
  return report;
}

TEST(LinkProbe, FindsTheRatesOfAThrottledStore) {
  const auto report = probe(7e7, 4e7, std::chrono::milliseconds(40));
  EXPECT_NEAR(report.latency_seconds, 0.04, 1e-6);
  EXPECT_NEAR(report.uplink_bytes_per_second, 7e7, 7e4);
  EXPECT_NEAR(report.downlink_bytes_per_second, 4e7, 4e4);
}

TEST(LinkProbe, WorksOnSlowLinks) {
  const auto report = probe(2e4, 1e5, Duration::zero());
  EXPECT_NEAR(report.uplink_bytes_per_second, 2e4, 20);
  EXPECT_NEAR(report.downlink_bytes_per_second, 1e5, 100);
}

// Lets the first bytes pass at ten times the lasting rate.
class BurstStore : public ForwardingStore {
 public:
  BurstStore(ObjectStore& base, Clock& clock) : ForwardingStore(base), clock_(clock) {}
  using ForwardingStore::put;
  void put(std::string_view key, std::span<const ByteView> parts) override {
    moved_ += total_size(parts);
    const double rate = moved_ < kBurst ? 7e8 : 7e7;
    clock_.sleep_for(from_seconds(static_cast<double>(total_size(parts)) / rate));
    ForwardingStore::put(key, parts);
  }
  static constexpr std::uint64_t kBurst = 100'000'000;

 private:
  Clock& clock_;
  std::uint64_t moved_ = 0;
};

TEST(LinkProbe, LeavesTheBurstBehind) {
  ManualClock clock;
  MemoryStore memory;
  BurstStore store(memory, clock);
  LinkProbeOptions options;
  options.transfer_time = std::chrono::seconds(20);
  EXPECT_GT(probe_links(store, "p", clock, options).uplink_bytes_per_second, 6e8);
  BurstStore fresh(memory, clock);
  options.burst_bytes = 3 * BurstStore::kBurst;
  EXPECT_NEAR(probe_links(fresh, "p", clock, options).uplink_bytes_per_second, 7e7, 1e5);
}

}  // namespace
}  // namespace funcpipe
