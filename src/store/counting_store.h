// Counts what goes through a store: the base of cost reports.
#pragma once

#include <mutex>

#include "core/usage.h"
#include "store/forwarding_store.h"

namespace funcpipe {

// Thread-safe.
class UsageCounter {
 public:
  void add(const StoreUsage& usage) {
    std::lock_guard lock(mutex_);
    usage_ += usage;
  }
  StoreUsage snapshot() const {
    std::lock_guard lock(mutex_);
    return usage_;
  }

 private:
  mutable std::mutex mutex_;
  StoreUsage usage_;
};

// Attempts count, whatever becomes of them: they are billed.
class CountingStore : public ForwardingStore {
 public:
  explicit CountingStore(ObjectStore& base) : CountingStore(base, own_) {}
  explicit CountingStore(std::unique_ptr<ObjectStore> base)
      : CountingStore(std::move(base), own_) {}
  // Counts into a counter shared with other stores; it outlives this one.
  CountingStore(ObjectStore& base, UsageCounter& counter)
      : ForwardingStore(base), counter_(counter) {}
  CountingStore(std::unique_ptr<ObjectStore> base, UsageCounter& counter)
      : ForwardingStore(std::move(base)), counter_(counter) {}

  StoreUsage snapshot() const { return counter_.snapshot(); }

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  std::optional<Buffer> counted(std::optional<Buffer> object);

  UsageCounter own_;
  UsageCounter& counter_;
};

}  // namespace funcpipe
