#include "core/usage.h"

namespace funcpipe {
namespace {

// Every member with its name in JSON, once.
template <typename Usage, typename Visit>
void for_each_member(Usage& usage, Visit visit) {
  visit("puts", usage.puts);
  visit("gets", usage.gets);
  visit("misses", usage.misses);
  visit("heads", usage.heads);
  visit("lists", usage.lists);
  visit("removes", usage.removes);
  visit("bytes_up", usage.bytes_up);
  visit("bytes_down", usage.bytes_down);
}

}  // namespace

StoreUsage& StoreUsage::operator+=(const StoreUsage& other) {
  const auto json = other.to_json();
  for_each_member(*this, [&](const char* name, std::uint64_t& value) {
    value += json.at(name).get<std::uint64_t>();
  });
  return *this;
}

StoreUsage operator-(StoreUsage left, const StoreUsage& right) {
  const auto json = right.to_json();
  for_each_member(left, [&](const char* name, std::uint64_t& value) {
    value -= json.at(name).get<std::uint64_t>();
  });
  return left;
}

nlohmann::json StoreUsage::to_json() const {
  nlohmann::json json;
  for_each_member(*this, [&](const char* name, std::uint64_t value) { json[name] = value; });
  return json;
}

StoreUsage StoreUsage::from_json(const nlohmann::json& json) {
  StoreUsage usage;
  for_each_member(usage, [&](const char* name, std::uint64_t& value) {
    value = json.at(name).get<std::uint64_t>();
  });
  return usage;
}

}  // namespace funcpipe
