#include "nn/allocation_tracker.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace funcpipe::nn {
namespace {

class Ledger final : public c10::MemoryReportingInfoBase {
 public:
  explicit Ledger(std::size_t owners) : live_(owners, 0) {}

  // A negative size is a free.
  void reportMemoryUsage(void* address, std::int64_t size, std::int64_t, std::int64_t,
                         c10::Device) override {
    if (size > 0) {
      blocks_[address] = {owner_, static_cast<std::uint64_t>(size)};
      add(owner_, size);
      return;
    }
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    const auto [owner, bytes] = found->second;
    blocks_.erase(found);
    add(owner, -static_cast<std::int64_t>(bytes));
  }
  bool memoryProfilingEnabled() const override { return true; }

  void set_owner(std::size_t owner) { owner_ = owner; }
  const std::vector<std::uint64_t>& live() const { return live_; }
  std::uint64_t take_peak() { return std::exchange(peak_, total_); }

 private:
  void add(std::size_t owner, std::int64_t bytes) {
    live_[owner] += static_cast<std::uint64_t>(bytes);
    total_ += static_cast<std::uint64_t>(bytes);
    peak_ = std::max(peak_, total_);
  }

  std::unordered_map<void*, std::pair<std::size_t, std::uint64_t>> blocks_;
  std::vector<std::uint64_t> live_;
  std::uint64_t total_ = 0, peak_ = 0;
  std::size_t owner_ = 0;
};

}  // namespace

// libtorch shares its debug information with its own threads.
struct AllocationTracker::Guard {
  explicit Guard(std::size_t owners)
      : ledger(std::make_shared<Ledger>(owners)),
        scope(c10::DebugInfoKind::PROFILER_STATE, ledger) {}
  std::shared_ptr<Ledger> ledger;
  c10::DebugInfoGuard scope;
};

AllocationTracker::AllocationTracker(std::size_t owners)
    : guard_(std::make_unique<Guard>(owners)) {}
AllocationTracker::~AllocationTracker() = default;

void AllocationTracker::set_owner(std::size_t owner) { guard_->ledger->set_owner(owner); }
const std::vector<std::uint64_t>& AllocationTracker::live_by_owner() const {
  return guard_->ledger->live();
}
std::uint64_t AllocationTracker::take_peak() { return guard_->ledger->take_peak(); }

}  // namespace funcpipe::nn
