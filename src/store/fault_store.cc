#include "store/fault_store.h"

#include "base/error.h"

namespace funcpipe {
namespace {

[[noreturn]] void fail_unavailable(std::string_view key) {
  throw Error(ErrorCode::kUnavailable, fmt::format("the store did not answer for '{}'", key),
              Error::Retry::kMayHelp);
}

}  // namespace

FaultStore::FaultStore(ObjectStore& base, const FaultOptions& options, Clock& clock)
    : ForwardingStore(base), options_(options), clock_(clock), rng_(options.seed) {}

FaultStore::FaultStore(std::unique_ptr<ObjectStore> base, const FaultOptions& options, Clock& clock)
    : ForwardingStore(std::move(base)), options_(options), clock_(clock), rng_(options.seed) {}

FaultStore::Fate FaultStore::draw(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  return {rng_.uniform() < faults.refused, rng_.uniform() < faults.lost,
          rng_.uniform() < faults.delayed};
}

template <typename Call>
auto FaultStore::suffer(const Faults& faults, std::string_view key, Call call) {
  const auto fate = draw(faults);
  if (fate.delayed) clock_.sleep_for(faults.delay);
  if (fate.refused) fail_unavailable(key);
  auto result = call();
  if (fate.lost) fail_unavailable(key);
  return result;
}

void FaultStore::put(std::string_view key, std::span<const ByteView> parts) {
  suffer(options_.put, key, [&] {
    base_.put(key, parts);
    return true;
  });
}

PutResult FaultStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  return suffer(options_.put_if_absent, key, [&] { return base_.put_if_absent(key, parts); });
}

std::optional<Buffer> FaultStore::get(std::string_view key) {
  return suffer(options_.get, key, [&] { return base_.get(key); });
}

std::optional<Buffer> FaultStore::get_range(std::string_view key, ByteRange range) {
  return suffer(options_.get, key, [&] { return base_.get_range(key, range); });
}

std::optional<ObjectInfo> FaultStore::head(std::string_view key) {
  return suffer(options_.head, key, [&] { return base_.head(key); });
}

ListPage FaultStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  return suffer(options_.list, prefix, [&] { return base_.list(prefix, after, limit); });
}

bool FaultStore::remove(std::string_view key) {
  return suffer(options_.remove, key, [&] { return base_.remove(key); });
}

}  // namespace funcpipe
