// What the profiler tells a function to measure, and what the function answers: payloads of
// invocations. Times are real time of the function's machine; the client makes platform time of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/job.h"
#include "core/usage.h"

namespace funcpipe {

struct ProfileTask {
  enum class Kind {
    kStart,   // nothing but first operations of libtorch: start-up time and base memory
    kLinks,   // bandwidth and latency of the store
    kLayers,  // layers [first_layer, last_layer), together, as one stage
  };
  Kind kind = Kind::kStart;
  std::string run;    // prefix in the store
  std::string store;  // URL of the store
  JobSpec job;        // dataset URLs are absolute
  // kLayers
  int first_layer = 0, last_layer = 0;
  int micro_batches = 1;  // of one pass: forward of all of them, then backward
  int warm_up_passes = 1;
  int rounds = 0;            // at most; fewer when the function's time limit comes first
  double round_seconds = 0;  // a round: passes for at least so long
  // kLinks
  std::uint64_t burst_bytes = 0;  // that the platform may let pass faster than it does for long
  double transfer_seconds = 0;    // at most about so long in each direction

  nlohmann::json to_json() const;
  // Throws Error(kInvalidArgument) for a payload that is not such a task.
  static ProfileTask from_text(std::string_view text);
};

// Whether a payload is for the profiler rather than for a worker.
bool is_profile_task(std::string_view payload);

struct LinkReport {
  double uplink_bytes_per_second = 0;
  double downlink_bytes_per_second = 0;
  double latency_seconds = 0;
  bool operator==(const LinkReport&) const = default;
};

// One layer: bytes of one micro-batch, and seconds, one value a round.
struct LayerReport {
  std::uint64_t activation_bytes = 0;
  std::uint64_t workspace_bytes = 0;
  std::uint64_t output_bytes = 0;
  std::vector<double> forward, backward, update;
  bool operator==(const LayerReport&) const = default;

  nlohmann::json to_json() const;
  static LayerReport from_json(const nlohmann::json& json);  // throws nlohmann::json::exception
};

struct ProfileReport {
  std::optional<LinkReport> links;
  std::vector<LayerReport> layers;  // all with equally many rounds, perhaps none
  std::vector<double> stretch;  // of each round: all its times are longer by this factor, if the
                                // function always computes
  StoreUsage usage;
  bool operator==(const ProfileReport&) const = default;

  nlohmann::json to_json() const;
  static ProfileReport from_text(std::string_view text);  // throws Error(kDataLoss)
};

nlohmann::json to_json(const LinkReport& links);
LinkReport link_report_from_json(const nlohmann::json& json);  // throws nlohmann::json::exception

}  // namespace funcpipe
