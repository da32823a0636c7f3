#include "runtime/step_log.h"

#include <utility>

namespace funcpipe {
namespace {
constexpr auto kInterval = std::chrono::milliseconds(500);
}

StepLog::StepLog(ObjectStore& store, const RunLayout& layout, int replica,
                 BackgroundQueue& background, Clock& clock)
    : store_(store), layout_(layout), replica_(replica), background_(background), clock_(clock) {}

void StepLog::add(const StepRecord& record) {
  pending_.push_back(record);
  if (clock_.now() >= next_flush_) flush();
}

void StepLog::flush() {
  if (pending_.empty()) return;
  background_.post([&store = store_, key = layout_.metrics(replica_, pending_.front().step),
                    text = to_text(pending_)] { put_if_absent(store, key, as_bytes(text)); });
  pending_.clear();
  next_flush_ = clock_.now() + kInterval;
}

}  // namespace funcpipe
