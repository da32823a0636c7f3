#include "store/object_store.h"

#include "base/error.h"

namespace funcpipe {
namespace {

bool is_printable(char c) { return c >= 0x20 && c <= 0x7e; }

}  // namespace

void check_key(std::string_view key) {
  const auto reject = [&](std::string_view why) {
    fail(ErrorCode::kInvalidArgument, "'{}' is not a key of an object store: {}", key, why);
  };
  if (key.empty()) reject("it is empty");
  if (key.size() > 1024) reject("it is longer than 1024 bytes");
  for (const char c : key) {
    if (!is_printable(c)) reject("only printable ASCII is allowed");
  }
  std::string_view rest = key;
  while (true) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == "..")
      reject("its parts between '/' must not be empty, '.' or '..'");
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

std::vector<ObjectInfo> list_all(ObjectStore& store, std::string_view prefix) {
  constexpr std::size_t kPage = 1000;
  std::vector<ObjectInfo> objects;
  std::string after;
  while (true) {
    auto page = store.list(prefix, after, kPage);
    objects.insert(objects.end(), page.objects.begin(), page.objects.end());
    if (page.next.empty()) return objects;
    after = page.next;
  }
}

}  // namespace funcpipe
