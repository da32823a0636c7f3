#include "nn/pass_times.h"

#include <algorithm>
#include <ctime>
#include <numeric>

namespace funcpipe::nn {
namespace {

// Pauses of less than this share of the wall time are noise.
constexpr double kNoise = 0.05;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double mean_wall(const std::vector<PassTimes>& passes) {
  double total = 0;
  for (const auto& pass : passes) total += sum(pass.wall);
  return total / static_cast<double>(passes.size());
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

void scale_to(double total, std::vector<double>& parts) {
  const double now = sum(parts);
  if (now <= 0) return;
  for (double& part : parts) part *= total / now;
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

std::vector<double> typical_seconds(const std::vector<PassTimes>& passes, int threads) {
  const double total = mean_wall(passes);
  auto wall = medians(passes, &PassTimes::wall);
  auto cpu = medians(passes, &PassTimes::cpu);
  const double busy = sum(cpu);
  if (threads > 1 || busy <= 0) {
    if (total <= (1 + kNoise) * sum(wall) || busy <= 0) {
      cpu = wall;
    } else {
      const double rate = busy / total;  // CPU seconds a second
      for (std::size_t i = 0; i < cpu.size(); ++i)
        cpu[i] = std::max(std::min(wall[i], cpu[i]), cpu[i] / rate);
    }
  }
  scale_to(total, cpu);
  return cpu;
}

}  // namespace funcpipe::nn
