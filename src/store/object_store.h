// The one thing functions can talk through: an object store. Small interface; behaviour is added by
// decorators (throttle, latency, retry, fault, counting), and one contract suite runs on every
// backend.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"

namespace funcpipe {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct ObjectInfo {
  std::string key;
  std::uint64_t size = 0;
};

struct ListPage {
  std::vector<ObjectInfo> objects;  // in key order
  std::string next;  // pass to list() as `after` for the next page; empty: this was the last
};

enum class PutResult { kStored, kAlreadyThere };

// Keys are what check_key accepts. All calls are safe from any number of threads and processes, and
// strongly consistent: a get, head or list that starts after a put has returned sees it. A put is
// seen whole or not at all; one that throws has left the old object or the new one. Failures of the
// backend throw Error; retryable() says whether the same call may succeed later. A backend may
// refuse (kFailedPrecondition) a key that another key has as its folder ("a" beside "a/b").
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // The object is the concatenation of `parts`, read only during the call. Replaces what was there.
  virtual void put(std::string_view key, std::span<const ByteView> parts) = 0;
  // Of several concurrent writers of one key exactly one gets kStored.
  virtual PutResult put_if_absent(std::string_view key, std::span<const ByteView> parts) = 0;
  // Nothing when there is no such object. A missing object is a value, not an error.
  virtual std::optional<Buffer> get(std::string_view key) = 0;
  // The part of the object inside `range`; shorter when the object ends earlier.
  virtual std::optional<Buffer> get_range(std::string_view key, ByteRange range) = 0;
  virtual std::optional<ObjectInfo> head(std::string_view key) = 0;
  // Objects whose key begins with `prefix` (not necessarily a whole part of it) and is greater than
  // `after`; at most `limit` >= 1 of them. A page may be shorter though more follow: only an empty
  // `next` says that it is the last. Objects put or removed meanwhile may be there or not.
  virtual ListPage list(std::string_view prefix, std::string_view after, std::size_t limit) = 0;
  // False when there was nothing to remove.
  virtual bool remove(std::string_view key) = 0;
};

// A key is up to 1024 bytes of printable ASCII (space to '~'): parts of 1 to 200 bytes between
// single '/', none beginning with '.' (backends keep such names for themselves). Throws
// kInvalidArgument that says what is wrong.
void check_key(std::string_view key);
bool is_key(std::string_view text);
// The same for the prefix of a key, which may be empty and may end anywhere in it.
void check_prefix(std::string_view prefix);

std::size_t total_size(std::span<const ByteView> parts);

// For backends: throws kInvalidArgument for a list() of no objects; makes a page of sorted objects,
// of which there may be more than `limit`.
void check_limit(std::size_t limit);
ListPage page_of(std::vector<ObjectInfo> objects, std::size_t limit);

// Single-part conveniences.
inline void put(ObjectStore& store, std::string_view key, ByteView bytes) {
  store.put(key, std::span(&bytes, 1));
}
inline PutResult put_if_absent(ObjectStore& store, std::string_view key, ByteView bytes) {
  return store.put_if_absent(key, std::span(&bytes, 1));
}
// All objects under a prefix, page by page. For tools and clean-up, never for waiting.
std::vector<ObjectInfo> list_all(ObjectStore& store, std::string_view prefix);

}  // namespace funcpipe
