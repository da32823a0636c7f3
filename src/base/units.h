// Quantities as people write them: "512 MB", "70 MB/s", "40 ms", "15 min".
//
// Decimal prefixes are powers of 1000, binary ones ("MiB") of 1024, except memory options of
// function platforms, which are MiB though the vendors write MB; the job file gives those as plain
// numbers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace funcpipe {

using Duration = std::chrono::nanoseconds;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;

// Each throws Error(kInvalidArgument) that shows the text and an example of the right form.
std::uint64_t parse_bytes(std::string_view text);      // "64 MB", "1.5 GiB", "100" (bytes)
double parse_bytes_per_second(std::string_view text);  // "70 MB/s", "500 Mbit/s", "inf"
Duration parse_duration(std::string_view text);        // "40 ms", "900 s", "1.5 min", "2 h", "0"

std::string format_bytes(double bytes);          // "1.50 MB"
std::string format_duration(Duration duration);  // "1.25 s", "3 min 05 s"

inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
// To the nearest nanosecond.
inline Duration from_seconds(double seconds) {
  return std::chrono::round<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace funcpipe
