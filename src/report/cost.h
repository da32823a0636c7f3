// What a run cost: from what its workers used and a platform's prices.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "core/platform_spec.h"
#include "core/run_record.h"

namespace funcpipe {

struct Cost {
  double gb_seconds = 0;
  double compute_usd = 0;   // GB-seconds
  double requests_usd = 0;  // invocations
  double storage_usd = 0;   // operations of the store
  double total_usd() const { return compute_usd + requests_usd + storage_usd; }
  Cost& operator+=(const Cost& other);
};

Cost cost_of(const WorkerAccount& account, const PlatformSpec& spec);
Cost cost_of(const StoreUsage& usage, const PlatformSpec& spec);
Cost total_cost(const std::vector<WorkerAccount>& accounts, const PlatformSpec& spec);

// cost.json: per worker what it used and cost, the client's own storage requests, and the total.
// docs/formats.md.
nlohmann::json cost_report(const std::vector<WorkerAccount>& accounts, const StoreUsage& client,
                           const PlatformSpec& spec);

}  // namespace funcpipe
