#include "core/usage.h"

#include <array>
#include <utility>

namespace funcpipe {
namespace {

// Every member with its name in JSON, once.
using Member = std::pair<const char*, std::uint64_t StoreUsage::*>;
constexpr std::array<Member, 8> kMembers = {{
    {"puts", &StoreUsage::puts},
    {"gets", &StoreUsage::gets},
    {"misses", &StoreUsage::misses},
    {"heads", &StoreUsage::heads},
    {"lists", &StoreUsage::lists},
    {"removes", &StoreUsage::removes},
    {"bytes_up", &StoreUsage::bytes_up},
    {"bytes_down", &StoreUsage::bytes_down},
}};
static_assert(sizeof(StoreUsage) == kMembers.size() * sizeof(std::uint64_t));

}  // namespace

StoreUsage& StoreUsage::operator+=(const StoreUsage& other) {
  for (const auto& [name, member] : kMembers) this->*member += other.*member;
  return *this;
}

StoreUsage operator-(StoreUsage left, const StoreUsage& right) {
  for (const auto& [name, member] : kMembers) left.*member -= right.*member;
  return left;
}

nlohmann::json StoreUsage::to_json() const {
  nlohmann::json json;
  for (const auto& [name, member] : kMembers) json[name] = this->*member;
  return json;
}

StoreUsage StoreUsage::from_json(const nlohmann::json& json) {
  StoreUsage usage;
  for (const auto& [name, member] : kMembers) usage.*member = json.at(name).get<std::uint64_t>();
  return usage;
}

}  // namespace funcpipe
