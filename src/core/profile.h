// A model profile: what the layers of a model take on a platform, for each memory option. The input
// of planner and simulator; written by `funcpipe profile`, or by hand (docs/planning.md).
//
// All bytes and times are those of one micro-batch of `micro_batch_size` samples, unless said
// otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/config.h"

namespace funcpipe {

// A memory option of the platform: what a function of that size is like.
struct ProfiledOption {
  int memory_mb = 0;
  double uplink_bytes_per_second = 0;
  double downlink_bytes_per_second = 0;
  double latency_seconds = 0;     // of one storage request
  double cold_start_seconds = 0;  // from invocation to the handler's first line, billed or not
  std::uint64_t base_memory_bytes = 0;  // of a worker that has loaded no layer
  bool operator==(const ProfiledOption&) const = default;
};

// One layer at one memory option, in seconds. Spreads are the quartile distance of the rounds.
struct LayerTiming {
  bool fits = true;  // false: the layer does not run in this memory; all else is 0 then
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;  // optimiser step of its parameters
  double forward_spread = 0;
  double backward_spread = 0;
  bool operator==(const LayerTiming&) const = default;
};

struct ProfiledLayer {
  std::string name;
  std::string kind;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t buffer_bytes = 0;      // running statistics and the like
  std::uint64_t activation_bytes = 0;  // kept from forward to backward
  std::uint64_t workspace_bytes = 0;   // needed beside that while the layer runs
  std::uint64_t output_bytes = 0;      // what travels if the model is cut behind this layer
  std::vector<LayerTiming> timings;    // one for each option
  bool operator==(const ProfiledLayer&) const = default;
};

struct ModelProfile {
  std::string model;
  std::string platform;  // "local", "aws-lambda", ...
  std::string source;    // "measured", "synthetic: ...": where the figures come from
  std::int64_t micro_batch_size = 1;
  std::string optimizer;  // of the update times: "sgd", "adam", "adamw"; empty: none measured
  std::vector<ProfiledOption> options;  // increasing memory
  std::vector<ProfiledLayer> layers;    // first to last

  int layer_count() const { return static_cast<int>(layers.size()); }
  int option_count() const { return static_cast<int>(options.size()); }
  std::uint64_t parameter_bytes() const;
  // Index of the option of this memory; nothing when it was not profiled.
  std::optional<std::size_t> option_of(int memory_mb) const;

  // Throws Error(kInvalidArgument) with file, line and key: a missing or unknown key, a negative or
  // non-finite value, one that only a wrong unit explains, a timing missing for an option, options
  // not in increasing order, no layers.
  static ModelProfile from_config(const ConfigNode& node);
  // Readable by from_config again, with equal result.
  nlohmann::json to_json() const;
  bool operator==(const ModelProfile&) const = default;
};

}  // namespace funcpipe
