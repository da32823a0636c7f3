// The base of decorators: passes every call on.
#pragma once

#include <memory>
#include <utility>

#include "store/object_store.h"

namespace funcpipe {

// A decorator overrides what it changes.
class ForwardingStore : public ObjectStore {
 public:
  // `base` outlives the decorator, or belongs to it.
  explicit ForwardingStore(ObjectStore& base) : base_(base) {}
  explicit ForwardingStore(std::unique_ptr<ObjectStore> base)
      : owned_(std::move(base)), base_(*owned_) {}

  void put(std::string_view key, std::span<const ByteView> parts) override {
    base_.put(key, parts);
  }
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override {
    return base_.put_if_absent(key, parts);
  }
  std::optional<Buffer> get(std::string_view key) override { return base_.get(key); }
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override {
    return base_.get_range(key, range);
  }
  std::optional<ObjectInfo> head(std::string_view key) override { return base_.head(key); }
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override {
    return base_.list(prefix, after, limit);
  }
  bool remove(std::string_view key) override { return base_.remove(key); }

 private:
  const std::unique_ptr<ObjectStore> owned_;

 protected:
  ObjectStore& base_;
};

}  // namespace funcpipe
