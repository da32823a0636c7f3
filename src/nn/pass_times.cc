#include "nn/pass_times.h"

#include <algorithm>
#include <ctime>
#include <numeric>

namespace funcpipe::nn {
namespace {

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<double> medians(const std::vector<PassTimes>& passes,
                            std::vector<double> PassTimes::*clock) {
  std::vector<double> result, column;
  for (std::size_t part = 0; part < (passes.front().*clock).size(); ++part) {
    column.clear();
    for (const auto& pass : passes) column.push_back((pass.*clock)[part]);
    const auto middle = column.begin() + static_cast<std::ptrdiff_t>(column.size() / 2);
    std::nth_element(column.begin(), middle, column.end());
    result.push_back(*middle);
  }
  return result;
}

}  // namespace

Stopwatch::Stopwatch() {
  clock_cost_ = 1;
  for (int i = 0; i < 100; ++i) {
    const double begin = cpu_seconds();
    clock_cost_ = std::min(clock_cost_, cpu_seconds() - begin);
  }
  restart();
}

void Stopwatch::restart() {
  cpu_begin_ = cpu_seconds();
  wall_begin_ = std::chrono::steady_clock::now();
}

Elapsed Stopwatch::elapsed() const {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_begin_;
  return {wall.count(), std::max(0.0, cpu_seconds() - cpu_begin_ - clock_cost_)};
}

TypicalPass typical_pass(const std::vector<PassTimes>& passes, const Elapsed& together,
                         const CpuGrant& grant) {
  const auto wall = medians(passes, &PassTimes::wall);
  const auto cpu = medians(passes, &PassTimes::cpu);
  TypicalPass typical;
  for (std::size_t i = 0; i < wall.size(); ++i) {
    double seconds = grant.threads == 1 ? cpu[i] : wall[i];
    if (grant.threads > 1 && grant.is_quota())
      seconds = std::max(std::min(wall[i], cpu[i]), cpu[i] / grant.cpus);
    typical.seconds.push_back(seconds);
  }
  // Between the parts the process does a little more, which takes part in the pauses.
  const double running = sum(typical.seconds) / sum(cpu) * together.cpu;
  if (grant.is_quota() && running > 0) typical.stretch = together.wall / running;
  return typical;
}

}  // namespace funcpipe::nn
