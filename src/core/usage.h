// What has gone through an object store: the base of its bill.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

namespace funcpipe {

struct StoreUsage {
  std::uint64_t puts = 0;    // put and put_if_absent
  std::uint64_t gets = 0;    // get and get_range, found or not
  std::uint64_t misses = 0;  // of the gets, those that found nothing
  std::uint64_t heads = 0;
  std::uint64_t lists = 0;
  std::uint64_t removes = 0;
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;

  StoreUsage& operator+=(const StoreUsage& other);
  friend StoreUsage operator-(StoreUsage left, const StoreUsage& right);
  bool operator==(const StoreUsage&) const = default;
  nlohmann::json to_json() const;
  static StoreUsage from_json(const nlohmann::json& json);  // throws nlohmann::json::exception
};

}  // namespace funcpipe
