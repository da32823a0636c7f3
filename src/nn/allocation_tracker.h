// What libtorch allocates on this thread, and for whom: exact, tensor by tensor. Only for src/nn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace funcpipe::nn {

// Sees allocations and frees from construction to destruction, both on the same thread. Memory from
// before is unknown to it, freed or not.
class AllocationTracker {
 public:
  // Allocations are booked to one of `owners`, at first to owner 0.
  explicit AllocationTracker(std::size_t owners);
  ~AllocationTracker();
  AllocationTracker(const AllocationTracker&) = delete;
  AllocationTracker& operator=(const AllocationTracker&) = delete;

  // From now on allocations belong to `owner`.
  void set_owner(std::size_t owner);
  // Bytes that are still allocated, by owner.
  const std::vector<std::uint64_t>& live_by_owner() const;
  // The most bytes that were allocated at a time since the last call, all owners together.
  std::uint64_t take_peak();

 private:
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

}  // namespace funcpipe::nn
