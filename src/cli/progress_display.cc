#include "cli/progress_display.h"

#include <cstdio>

#include <fmt/core.h>

#include "base/units.h"

namespace funcpipe {
namespace {

constexpr auto kTerminalInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(5);
constexpr int kBarWidth = 24;

std::string bar(std::int64_t done, std::int64_t all) {
  const auto full = static_cast<std::size_t>(kBarWidth * done / all);
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "]";
}

std::string countdown(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

ProgressDisplay::~ProgressDisplay() { finish(); }

double ProgressDisplay::samples_per_second() const {
  return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0;
}

std::string ProgressDisplay::line(const StepSummary& summary, double cost_usd) const {
  const auto done = summary.step + 1;
  std::string text = fmt::format("step {}/{}  epoch {}  loss {:.4f}", done, summary.steps,
                                 summary.epoch + 1, summary.loss);
  if (seconds_ > 0 && summary.step > 0) {
    const double remaining =
        seconds_ / static_cast<double>(summary.step) * static_cast<double>(summary.steps - done);
    text += fmt::format("  {:.0f} samples/s  about ${:.4f}  ETA {}", samples_per_second(), cost_usd,
                        countdown(remaining));
  }
  return terminal_ ? bar(done, summary.steps) + " " + text : text;
}

void ProgressDisplay::step(const StepSummary& summary, double cost_usd) {
  if (summary.seconds > 0) {
    seconds_ += summary.seconds;
    samples_ += summary.samples;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool ends = summary.step + 1 == summary.steps;
  if (!ends && summary.step > 0 &&
      now - last_ < (terminal_ ? std::chrono::nanoseconds(kTerminalInterval) : kPlainInterval))
    return;
  last_ = now;
  clear_line();
  fmt::print(stderr, "{}{}", line(summary, cost_usd), terminal_ ? "" : "\n");
  std::fflush(stderr);
  drawn_ = terminal_;
}

void ProgressDisplay::evaluation(const EvaluationSummary& summary) {
  clear_line();
  fmt::print(stderr, "after step {}: test loss {:.4f}, test accuracy {:.2f} % ({} of {})\n",
             summary.step, summary.loss, 100 * summary.accuracy, summary.correct, summary.samples);
}

void ProgressDisplay::note(const std::string& text) {
  clear_line();
  fmt::print(stderr, "{}\n", text);
}

void ProgressDisplay::finish() {
  if (drawn_) fmt::print(stderr, "\n");
  drawn_ = false;
}

void ProgressDisplay::clear_line() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace funcpipe
