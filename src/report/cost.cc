#include "report/cost.h"

namespace funcpipe {
namespace {

nlohmann::json to_json(const Cost& cost) {
  return {{"gb_seconds", cost.gb_seconds},
          {"compute_usd", cost.compute_usd},
          {"requests_usd", cost.requests_usd},
          {"storage_usd", cost.storage_usd},
          {"total_usd", cost.total_usd()}};
}

nlohmann::json to_json(const WorkerAccount& account, const PlatformSpec& spec) {
  return {
      {"worker", account.worker.text()},
      {"memory_mb", account.memory_mb},
      {"invocations", account.invocations},
      {"cold_starts", account.cold_starts},
      {"billed_ms", std::chrono::duration_cast<std::chrono::milliseconds>(account.billed).count()},
      {"max_memory_used_mb", account.max_memory_used_mb},
      {"compute_lane_seconds", account.compute_seconds},
      {"store", account.usage.to_json()},
      {"cost", to_json(cost_of(account, spec))}};
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  gb_seconds += other.gb_seconds;
  compute_usd += other.compute_usd;
  requests_usd += other.requests_usd;
  storage_usd += other.storage_usd;
  return *this;
}

Cost cost_of(const StoreUsage& usage, const PlatformSpec& spec) {
  Cost cost;
  cost.storage_usd = static_cast<double>(usage.puts + usage.lists) * spec.usd_per_put +
                     static_cast<double>(usage.gets + usage.heads) * spec.usd_per_get;
  return cost;
}

Cost cost_of(const WorkerAccount& account, const PlatformSpec& spec) {
  Cost cost = cost_of(account.usage, spec);
  cost.gb_seconds = gb_seconds(account.memory_mb, account.billed);
  cost.compute_usd = cost.gb_seconds * spec.usd_per_gb_second;
  cost.requests_usd = account.invocations * spec.usd_per_invocation;
  return cost;
}

Cost total_cost(const std::vector<WorkerAccount>& accounts, const PlatformSpec& spec) {
  Cost total;
  for (const auto& account : accounts) total += cost_of(account, spec);
  return total;
}

nlohmann::json cost_report(const std::vector<WorkerAccount>& accounts, const StoreUsage& client,
                           const PlatformSpec& spec) {
  auto workers = nlohmann::json::array();
  StoreUsage usage = client;
  for (const auto& account : accounts) {
    workers.push_back(to_json(account, spec));
    usage += account.usage;
  }
  auto total = total_cost(accounts, spec);
  total += cost_of(client, spec);
  return {{"funcpipe_cost", 1},
          {"prices", spec.name},
          {"usd_per_gb_second", spec.usd_per_gb_second},
          {"workers", std::move(workers)},
          {"client", {{"store", client.to_json()}, {"cost", to_json(cost_of(client, spec))}}},
          {"store", usage.to_json()},
          {"total", to_json(total)}};
}

}  // namespace funcpipe
