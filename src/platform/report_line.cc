#include "platform/report_line.h"

#include <cstdlib>

#include <fmt/core.h>

namespace funcpipe {
namespace {

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// The number behind "\t<name>: ", if the line has it.
std::optional<double> field(std::string_view line, std::string_view name) {
  const auto at = line.find(fmt::format("\t{}: ", name));
  if (at == std::string_view::npos) return std::nullopt;
  const std::string number(line.substr(at + name.size() + 3, 32));
  return std::strtod(number.c_str(), nullptr);
}

Duration duration_field(std::string_view line, std::string_view name) {
  return from_seconds(field(line, name).value_or(0) / 1000);
}

}  // namespace

std::string format_report(std::string_view request_id, const Usage& usage) {
  std::string line = fmt::format(
      "REPORT RequestId: {}\tDuration: {:.2f} ms\tBilled Duration: {:.0f} ms\tMemory Size: {} MB\t"
      "Max Memory Used: {} MB\t",
      request_id, milliseconds(usage.duration), milliseconds(usage.billed), usage.memory_mb,
      usage.max_memory_used_mb);
  if (usage.cold_start) {
    line += fmt::format("Init Duration: {:.2f} ms\t", milliseconds(usage.initialisation));
  }
  return line + "\n";
}

std::optional<Usage> parse_report(std::string_view log) {
  const auto start = log.rfind("REPORT RequestId: ");
  if (start == std::string_view::npos) return std::nullopt;
  const std::string_view line = log.substr(start, log.find('\n', start) - start);
  Usage usage;
  usage.duration = duration_field(line, "Duration");
  usage.billed = duration_field(line, "Billed Duration");
  usage.initialisation = duration_field(line, "Init Duration");
  usage.cold_start = field(line, "Init Duration").has_value();
  usage.memory_mb = static_cast<int>(field(line, "Memory Size").value_or(0));
  usage.max_memory_used_mb = static_cast<int>(field(line, "Max Memory Used").value_or(0));
  return usage;
}

Duration billed_duration(Duration initialisation, Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(initialisation + duration);
}

}  // namespace funcpipe
