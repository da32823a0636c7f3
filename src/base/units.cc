#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

namespace funcpipe {
namespace {

struct Quantity {
  double value;
  std::string_view unit;
};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[noreturn]] void reject(std::string_view text, std::string_view what, std::string_view example) {
  fail(ErrorCode::kInvalidArgument, "'{}' is not {}; write for example '{}'", text, what, example);
}

Quantity split(std::string_view text, std::string_view what, std::string_view example) {
  const auto trimmed = trim(text);
  const auto* const end = trimmed.data() + trimmed.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(trimmed.data(), end, value);
  if (error != std::errc() || !std::isfinite(value) || std::signbit(value)) {
    reject(text, what, example);
  }
  return {value, trim({rest, static_cast<std::size_t>(end - rest)})};
}

template <std::size_t N>
double scale_of(const Quantity& quantity,
                const std::array<std::pair<std::string_view, double>, N>& units,
                std::string_view text, std::string_view what, std::string_view example) {
  for (const auto& [name, scale] : units) {
    if (name == quantity.unit) return quantity.value * scale;
  }
  reject(text, what, example);
}

constexpr std::array<std::pair<std::string_view, double>, 9> kByteUnits = {{
    {"", 1},
    {"B", 1},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"KiB", 1024.0},
    {"MiB", 1024.0 * 1024},
    {"GiB", 1024.0 * 1024 * 1024},
}};
constexpr std::array<std::pair<std::string_view, double>, 9> kRateUnits = {{
    {"B/s", 1},
    {"kB/s", 1e3},
    {"KB/s", 1e3},
    {"MB/s", 1e6},
    {"GB/s", 1e9},
    {"MiB/s", 1024.0 * 1024},
    {"GiB/s", 1024.0 * 1024 * 1024},
    {"Mbit/s", 1e6 / 8},
    {"Gbit/s", 1e9 / 8},
}};
constexpr std::array<std::pair<std::string_view, double>, 6> kTimeUnits = {{
    {"ns", 1},
    {"us", 1e3},
    {"ms", 1e6},
    {"s", 1e9},
    {"min", 60e9},
    {"h", 3600e9},
}};

// What still fits a 64-bit signed integer with room for rounding.
constexpr double kMostInteger = 9e18;

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  constexpr auto what = "an amount of bytes", example = "64 MB";
  const double bytes = scale_of(split(text, what, example), kByteUnits, text, what, example);
  if (!(bytes <= kMostInteger)) reject(text, what, example);
  return static_cast<std::uint64_t>(std::llround(bytes));
}

double parse_bytes_per_second(std::string_view text) {
  constexpr auto what = "a bandwidth", example = "70 MB/s";
  if (trim(text) == "inf") return std::numeric_limits<double>::infinity();
  const double rate = scale_of(split(text, what, example), kRateUnits, text, what, example);
  if (!(rate > 0) || !std::isfinite(rate)) reject(text, what, example);
  return rate;
}

Duration parse_duration(std::string_view text) {
  constexpr auto what = "a duration", example = "40 ms";
  const Quantity quantity = split(text, what, example);
  if (quantity.value == 0 && quantity.unit.empty()) return Duration::zero();
  const double nanoseconds = scale_of(quantity, kTimeUnits, text, what, example);
  if (!(nanoseconds <= kMostInteger)) reject(text, what, example);
  return Duration(std::llround(nanoseconds));
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 999.995 && unit + 1 < kUnits.size()) {  // that prints as 1000.00
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, kUnits[unit]);
}

std::string format_duration(Duration duration) {
  const double seconds = to_seconds(duration);
  if (seconds < 0.9995e-3) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 0.99995) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 59.995) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace funcpipe
