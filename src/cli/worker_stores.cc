#include "cli/worker_stores.h"

#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "store/open_store.h"

namespace funcpipe {
namespace {

double number_from_environment(const char* name, double fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0))
    fail(ErrorCode::kInvalidArgument, "{}='{}' is not a number", name, text);
  return value;
}

}  // namespace

std::unique_ptr<WorkerStores> WorkerStores::from_environment(Clock& clock) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  const auto latency = std::chrono::nanoseconds(
      static_cast<std::int64_t>(number_from_environment("FUNCPIPE_LATENCY_NS", 0)));
  return std::make_unique<WorkerStores>(number_from_environment("FUNCPIPE_UPLINK", kUnlimited),
                                        number_from_environment("FUNCPIPE_DOWNLINK", kUnlimited),
                                        latency, clock);
}

std::unique_ptr<ObjectStore> WorkerStores::open(const std::string& url) {
  auto throttled = std::make_unique<ThrottledStore>(open_store(url, OpenMode::kExisting), links_);
  return std::make_unique<CountingStore>(std::move(throttled), counter_);
}

}  // namespace funcpipe
