#include "store/object_store.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr std::size_t kMaxKeySize = 1024;
constexpr std::size_t kMaxPartSize = 200;
constexpr std::size_t kPageSize = 10'000;

bool is_printable_ascii(char c) { return c >= ' ' && c <= '~'; }

// The text with everything that could garble a terminal replaced.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 80));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return !is_printable_ascii(c); }, '?');
  return result + (text.size() > 80 ? "..." : "");
}

// `complete`: the part ends where it ends; otherwise it may be the beginning of a longer one.
std::string_view fault_of_part(std::string_view part, bool complete) {
  if (part.empty() && complete) return "it has an empty part";
  if (part.starts_with('.')) return "it has a part that begins with '.'";
  if (part.size() > kMaxPartSize) return "it has a part of more than 200 bytes";
  return {};
}

// What is wrong with a key; empty: nothing.
std::string_view fault_of(std::string_view key, bool complete) {
  if (key.size() > kMaxKeySize) return "it is longer than 1024 bytes";
  if (!std::all_of(key.begin(), key.end(), is_printable_ascii)) {
    return "it has characters other than printable ASCII";
  }
  for (auto slash = key.find('/'); slash != key.npos; slash = key.find('/')) {
    if (const auto fault = fault_of_part(key.substr(0, slash), true); !fault.empty()) return fault;
    key.remove_prefix(slash + 1);
  }
  return fault_of_part(key, complete);
}

void check(std::string_view key, bool complete, std::string_view kind) {
  if (const auto fault = fault_of(key, complete); !fault.empty()) {
    fail(ErrorCode::kInvalidArgument, "'{}' cannot be {} of an object store: {}", shown(key), kind,
         fault);
  }
}

}  // namespace

void check_key(std::string_view key) { check(key, true, "a key"); }

void check_prefix(std::string_view prefix) { check(prefix, false, "the prefix of keys"); }

bool is_key(std::string_view text) { return fault_of(text, true).empty(); }

std::size_t total_size(std::span<const ByteView> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

void check_limit(std::size_t limit) {
  if (limit == 0) fail(ErrorCode::kInvalidArgument, "a list of at most 0 objects was asked for");
}

ListPage page_of(std::vector<ObjectInfo> objects, std::size_t limit) {
  ListPage page{std::move(objects), {}};
  if (page.objects.size() > limit) {
    page.objects.resize(limit);
    page.next = page.objects.back().key;
  }
  return page;
}

std::vector<ObjectInfo> list_all(ObjectStore& store, std::string_view prefix) {
  std::vector<ObjectInfo> objects;
  std::string after;
  do {
    auto page = store.list(prefix, after, kPageSize);
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(objects));
    after = std::move(page.next);
  } while (!after.empty());
  return objects;
}

}  // namespace funcpipe
