#include "coordinator/progress_follower.h"

#include <algorithm>
#include <utility>

namespace funcpipe {

ProgressFollower::ProgressFollower(ObjectStore& store, const RunLayout& layout,
                                   const StepSequence& steps, const Options& options)
    : store_(store),
      layout_(layout),
      steps_(steps),
      options_(options),
      records_(static_cast<std::size_t>(options.replicas)),
      next_record_(static_cast<std::size_t>(options.replicas), 0) {}

bool ProgressFollower::poll() {
  bool news = false;
  for (int replica = 0; replica < options_.replicas; ++replica) {
    while (read_records(replica)) news = true;
  }
  while (true) {
    if (evaluation_pending_) {
      if (!read_evaluation()) break;
    } else {
      const bool all_there =
          next_step_ < steps_.steps() &&
          std::all_of(records_.begin(), records_.end(),
                      [&](const auto& records) { return records.contains(next_step_); });
      if (!all_there) break;
      emit_step();
    }
    news = true;
  }
  return news;
}

bool ProgressFollower::complete() const {
  return next_step_ == steps_.steps() && !evaluation_pending_;
}

bool ProgressFollower::read_records(int replica) {
  auto& next = next_record_[static_cast<std::size_t>(replica)];
  if (next >= steps_.steps()) return false;
  const auto object = store_.get(layout_.metrics(replica, next));
  if (!object) return false;
  for (const auto& record : step_records_from_text(object->text())) {
    records_[static_cast<std::size_t>(replica)][record.step] = record;
    next = record.step + 1;
  }
  return true;
}

void ProgressFollower::emit_step() {
  const Step step = steps_.at(next_step_);
  StepSummary summary;
  summary.step = step.index;
  summary.steps = steps_.steps();
  summary.epoch = step.epoch;
  double loss = 0;
  std::int64_t correct = 0, end = 0;
  for (auto& records : records_) {
    const auto record = records.extract(next_step_).mapped();
    loss += record.loss_sum;
    correct += record.correct;
    summary.samples += record.samples;
    summary.learning_rate = record.learning_rate;
    summary.puts += record.puts;
    summary.gets += record.gets;
    end = std::max(end, record.end_unix_ns);
  }
  summary.loss = loss / static_cast<double>(summary.samples);
  summary.accuracy = static_cast<double>(correct) / static_cast<double>(summary.samples);
  if (last_end_unix_ns_ > 0) {
    summary.seconds = static_cast<double>(end - last_end_unix_ns_) * 1e-9 / options_.time_dilation;
  }
  last_end_unix_ns_ = end;
  ++next_step_;
  evaluation_pending_ = evaluation_due(next_step_);
  if (on_step) on_step(summary);
}

bool ProgressFollower::evaluation_due(std::int64_t steps_done) const {
  if (!options_.evaluates) return false;
  if (steps_done == steps_.steps()) return true;
  return options_.evaluate_every_steps > 0 && steps_done % options_.evaluate_every_steps == 0;
}

bool ProgressFollower::read_evaluation() {
  EvaluationSummary summary;
  summary.step = next_step_;
  for (int replica = 0; replica < options_.replicas; ++replica) {
    const auto object = store_.get(layout_.evaluation(replica, next_step_));
    if (!object) return false;
    const auto record = evaluation_record_from_text(object->text());
    summary.loss += record.loss_sum;
    summary.correct += record.correct;
    summary.samples += record.samples;
  }
  summary.loss /= static_cast<double>(std::max<std::int64_t>(1, summary.samples));
  summary.accuracy = static_cast<double>(summary.correct) /
                     static_cast<double>(std::max<std::int64_t>(1, summary.samples));
  evaluation_pending_ = false;
  if (on_evaluation) on_evaluation(summary);
  return true;
}

}  // namespace funcpipe
