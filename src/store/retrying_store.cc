#include "store/retrying_store.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"

namespace funcpipe {
namespace {

bool equals(ByteView whole, std::span<const ByteView> parts) {
  if (whole.size() != total_size(parts)) return false;
  for (const auto part : parts) {
    if (!std::equal(part.begin(), part.end(), whole.begin())) return false;
    whole = whole.subspan(part.size());
  }
  return true;
}

}  // namespace

template <typename Call>
auto RetryingStore::persist(Call call) {
  const auto begin = clock_.now();
  const auto deadline = Deadline::after(clock_, options_.budget);
  Backoff backoff(options_.backoff, derive_seed(options_.seed, {calls_++}));
  for (int tries = 1;; ++tries) {
    try {
      return call(tries);
    } catch (const Error& error) {
      if (!error.retryable()) throw;
      const auto next = Clock::later(clock_.now(), backoff.next());
      if (tries >= options_.most_tries || next >= deadline.time()) {
        throw error.with_context(
            fmt::format("tried {} times in {}", tries, format_duration(clock_.now() - begin)));
      }
      clock_.sleep_until(next, {});
    }
  }
}

void RetryingStore::put(std::string_view key, std::span<const ByteView> parts) {
  persist([&](int) { base_.put(key, parts); });
}

PutResult RetryingStore::put_if_absent(std::string_view key, std::span<const ByteView> parts) {
  int tries = 0;
  const auto result = persist([&](int number) {
    tries = number;
    return base_.put_if_absent(key, parts);
  });
  if (result == PutResult::kAlreadyThere && tries > 1 && holds(key, parts)) {
    return PutResult::kStored;
  }
  return result;
}

bool RetryingStore::holds(std::string_view key, std::span<const ByteView> parts) {
  const auto object = get(key);
  return object && equals(object->view(), parts);
}

std::optional<Buffer> RetryingStore::get(std::string_view key) {
  return persist([&](int) { return base_.get(key); });
}

std::optional<Buffer> RetryingStore::get_range(std::string_view key, ByteRange range) {
  return persist([&](int) { return base_.get_range(key, range); });
}

std::optional<ObjectInfo> RetryingStore::head(std::string_view key) {
  return persist([&](int) { return base_.head(key); });
}

ListPage RetryingStore::list(std::string_view prefix, std::string_view after, std::size_t limit) {
  return persist([&](int) { return base_.list(prefix, after, limit); });
}

bool RetryingStore::remove(std::string_view key) {
  return persist([&](int) { return base_.remove(key); });
}

}  // namespace funcpipe
