#include "store/prefixed_store.h"

namespace funcpipe {
namespace {

std::string checked(std::string_view prefix) {
  check_key(prefix);
  return std::string(prefix) + "/";
}

}  // namespace

PrefixedStore::PrefixedStore(ObjectStore& base, std::string_view prefix)
    : ForwardingStore(base), prefix_(checked(prefix)) {}

PrefixedStore::PrefixedStore(std::unique_ptr<ObjectStore> base, std::string_view prefix)
    : ForwardingStore(std::move(base)), prefix_(checked(prefix)) {}

std::string PrefixedStore::full(std::string_view key) const {
  check_key(key);
  return prefix_ + std::string(key);
}

std::string PrefixedStore::stripped(std::string_view full_key) const {
  return std::string(full_key.substr(std::min(full_key.size(), prefix_.size())));
}

void PrefixedStore::put(std::string_view key, std::span<const ByteView> parts) {
  base_.put(full(key), parts);
}

PutResult PrefixedStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  return base_.put_if_absent(full(key), parts);
}

std::optional<Buffer> PrefixedStore::get(std::string_view key) { return base_.get(full(key)); }

std::optional<Buffer> PrefixedStore::get_range(std::string_view key, ByteRange range) {
  return base_.get_range(full(key), range);
}

std::optional<ObjectInfo> PrefixedStore::head(std::string_view key) {
  auto info = base_.head(full(key));
  if (info) info->key = key;
  return info;
}

ListPage PrefixedStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  check_prefix(prefix);
  const auto from = after.empty() ? std::string() : prefix_ + std::string(after);
  auto page = base_.list(prefix_ + std::string(prefix), from, limit);
  for (auto& object : page.objects) object.key = stripped(object.key);
  page.next = stripped(page.next);
  return page;
}

bool PrefixedStore::remove(std::string_view key) { return base_.remove(full(key)); }

}  // namespace funcpipe
