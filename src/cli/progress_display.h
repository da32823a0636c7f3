// What a user sees of a run while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/run_record.h"

namespace funcpipe {

// On a terminal one line that is drawn again and again; elsewhere plain lines, one every few
// seconds. Writes to stderr, so that stdout stays free for results. Used by one thread.
class ProgressDisplay {
 public:
  // `cost_so_far` in USD is asked for whenever a line is drawn.
  explicit ProgressDisplay(bool terminal) : terminal_(terminal) {}
  ~ProgressDisplay();

  void step(const StepSummary& summary, double cost_usd);
  void evaluation(const EvaluationSummary& summary);
  void note(const std::string& text);
  // Ends the line, so that other output can follow.
  void finish();

  // Mean of the steps since the first, in the platform's time.
  double samples_per_second() const;

 private:
  std::string line(const StepSummary& summary, double cost_usd) const;
  void clear_line();

  const bool terminal_;
  bool drawn_ = false;
  double seconds_ = 0;
  std::int64_t samples_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace funcpipe
