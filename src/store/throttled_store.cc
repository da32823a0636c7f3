#include "store/throttled_store.h"

namespace funcpipe {

void ThrottledStore::wait_latency() {
  if (links_.latency > Duration::zero()) links_.clock.sleep_for(links_.latency);
}

// The bytes began to come at `begin`, when the store below was asked.
std::optional<Buffer> ThrottledStore::received(std::optional<Buffer> object, TimePoint begin) {
  if (object) links_.downlink.transfer(object->size(), begin);
  return object;
}

void ThrottledStore::put(std::string_view key, std::span<const ByteView> parts) {
  wait_latency();
  links_.uplink.transfer(total_size(parts));
  base_.put(key, parts);
}

PutResult ThrottledStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  wait_latency();
  links_.uplink.transfer(total_size(parts));
  return base_.put_if_absent(key, parts);
}

std::optional<Buffer> ThrottledStore::get(std::string_view key) {
  wait_latency();
  const auto begin = links_.clock.now();
  return received(base_.get(key), begin);
}

std::optional<Buffer> ThrottledStore::get_range(std::string_view key, ByteRange range) {
  wait_latency();
  const auto begin = links_.clock.now();
  return received(base_.get_range(key, range), begin);
}

std::optional<ObjectInfo> ThrottledStore::head(std::string_view key) {
  wait_latency();
  return base_.head(key);
}

ListPage ThrottledStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  wait_latency();
  return base_.list(prefix, after, limit);
}

bool ThrottledStore::remove(std::string_view key) {
  wait_latency();
  return base_.remove(key);
}

}  // namespace funcpipe
