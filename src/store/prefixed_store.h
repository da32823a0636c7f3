// A part of a store as a store of its own.
#pragma once

#include <string>

#include "store/forwarding_store.h"

namespace funcpipe {

// The object `key` is `<prefix>/<key>` in the store below. Thread-safe.
class PrefixedStore : public ForwardingStore {
 public:
  // Throws Error(kInvalidArgument) for a prefix that is not a key itself.
  PrefixedStore(ObjectStore& base, std::string_view prefix);
  PrefixedStore(std::unique_ptr<ObjectStore> base, std::string_view prefix);

  void put(std::string_view key, std::span<const ByteView> parts) override;
  PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) override;
  std::optional<Buffer> get(std::string_view key) override;
  std::optional<Buffer> get_range(std::string_view key, ByteRange range) override;
  std::optional<ObjectInfo> head(std::string_view key) override;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) override;
  bool remove(std::string_view key) override;

 private:
  std::string full(std::string_view key) const;
  std::string stripped(std::string_view full_key) const;

  const std::string prefix_;  // ends with '/'
};

}  // namespace funcpipe
