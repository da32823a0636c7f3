// What of a profile has been measured so far, so that an interrupted one can go on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/profile_task.h"

namespace funcpipe {

// Times are in the platform's time.
struct OptionProgress {
  struct Start {
    double cold_start_seconds = 0;
    std::uint64_t base_memory_bytes = 0;
  };
  struct Layer {
    enum class State { kOpen, kMeasured, kDoesNotFit };
    State state = State::kOpen;
    LayerReport report;  // kMeasured
  };
  std::optional<Start> start;
  std::optional<LinkReport> links;
  std::vector<Layer> layers;

  bool complete() const;
  int open_layers() const;
};

struct ProfileProgress {
  // Of all that the figures depend on; a profile goes on only with equal ones.
  std::string fingerprint;
  std::map<int, OptionProgress> options;  // by memory in MB

  nlohmann::json to_json() const;
  // Throws Error(kDataLoss) for text that is not a progress.
  static ProfileProgress from_text(std::string_view text);
};

}  // namespace funcpipe
