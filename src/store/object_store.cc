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

[[noreturn]] void reject(std::string_view key, std::string_view reason) {
  fail(ErrorCode::kInvalidArgument, "store key '{}' {}", shown(key), reason);
}

// `complete`: the part ends where it ends; otherwise it may be the beginning of a longer one.
void check_part(std::string_view key, std::string_view part, bool complete) {
  if (part.empty() && complete) reject(key, "has an empty part (a '/' too many)");
  if (part.starts_with('.')) reject(key, "has a part that begins with '.'");
  if (part.size() > kMaxPartSize) reject(key, "has a part of more than 200 bytes");
}

void check(std::string_view key, bool complete) {
  if (key.size() > kMaxKeySize) reject(key, "is longer than 1024 bytes");
  if (!std::all_of(key.begin(), key.end(), is_printable_ascii)) {
    reject(key, "has characters other than printable ASCII");
  }
  std::size_t begin = 0;
  for (auto end = key.find('/'); end != key.npos; end = key.find('/', begin)) {
    check_part(key, key.substr(begin, end - begin), true);
    begin = end + 1;
  }
  check_part(key, key.substr(begin), complete);
}

}  // namespace

void check_key(std::string_view key) { check(key, true); }

void check_prefix(std::string_view prefix) { check(prefix, false); }

std::size_t total_size(std::span<const ByteView> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
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
