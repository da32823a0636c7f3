#include "profile/link_probe.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "profile/statistics.h"

namespace funcpipe {
namespace {

constexpr int kLatencyRequests = 15;  // in each direction
constexpr std::size_t kSmallest = 64 << 10;
constexpr std::size_t kLargest = 16 << 20;
constexpr double kLongEnough = 0.2;  // seconds
constexpr std::size_t kTransfers = 5;

// Bytes that no link compresses.
Buffer random_bytes(std::size_t size) {
  Buffer buffer(size);
  Rng rng(size);
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= size; i += sizeof(std::uint64_t)) {
    const auto value = rng();
    std::memcpy(buffer.data() + i, &value, sizeof(value));
  }
  return buffer;
}

class LinkProbe {
 public:
  LinkProbe(ObjectStore& store, const std::string& prefix, Clock& clock,
            const LinkProbeOptions& options)
      : store_(store), key_(prefix + "/object"), clock_(clock), options_(options) {}
  ~LinkProbe() {
    try {
      store_.remove(key_);
    } catch (const Error&) {
      // The client removes what is left of the run.
    }
  }

  LinkReport run() {
    LinkReport report;
    report.latency_seconds = latency_ = measure_latency();
    find_size();
    report.uplink_bytes_per_second = measure_rate([this] { up(size_); });
    report.downlink_bytes_per_second = measure_rate([this] { down(); });
    return report;
  }

 private:
  void up(std::size_t size) { put(store_, key_, bytes_.view().first(size)); }
  void down() {
    if (!store_.get(key_)) fail(ErrorCode::kDataLoss, "'{}' has gone from the store", key_);
  }

  double seconds_of(const std::function<void()>& action) {
    const auto begin = clock_.now();
    action();
    return to_seconds(clock_.now() - begin);
  }

  double measure_latency() {
    std::vector<double> seconds;
    for (int i = 0; i < kLatencyRequests; ++i) {
      seconds.push_back(seconds_of([this] { up(1); }));
      seconds.push_back(seconds_of([this] { down(); }));
    }
    return quartiles_of(seconds).median;
  }

  void find_size() {
    while (size_ < kLargest && seconds_of([this] { up(size_); }) < kLongEnough) size_ *= 2;
  }

  // The later half of the transfers counts.
  double measure_rate(const std::function<void()>& transfer) {
    const auto end = Deadline::after(clock_, options_.transfer_time);
    std::vector<double> rates;
    std::uint64_t moved = 0;
    while (rates.empty() ||
           ((rates.size() < kTransfers || moved < options_.burst_bytes) && !end.expired(clock_))) {
      const double seconds = seconds_of(transfer) - latency_;
      rates.push_back(static_cast<double>(size_) / std::max(seconds, 1e-9));
      moved += size_;
    }
    rates.erase(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2));
    return quartiles_of(rates).median;
  }

  ObjectStore& store_;
  const std::string key_;
  Clock& clock_;
  const LinkProbeOptions options_;
  const Buffer bytes_ = random_bytes(kLargest);
  std::size_t size_ = kSmallest;
  double latency_ = 0;
};

}  // namespace

LinkReport probe_links(ObjectStore& store, const std::string& prefix, Clock& clock,
                       const LinkProbeOptions& options) {
  return LinkProbe(store, prefix, clock, options).run();
}

}  // namespace funcpipe
