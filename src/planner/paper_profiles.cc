#include "planner/paper_profiles.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "core/platform_spec.h"

namespace funcpipe {
namespace {

constexpr double kBytesPerValue = 4;
constexpr std::uint64_t kBaseMemoryBytes = 200 * kMebibyte;  // libtorch, loaded
constexpr double kColdStartSeconds = 1.5;

struct Machine {
  ProfiledOption option;
  double speed = 0;  // vCPUs of perfect scaling that it computes like
};

double amdahl(double vcpu_count, double serial_share) {
  return vcpu_count <= 1 ? vcpu_count : 1 / (serial_share + (1 - serial_share) / vcpu_count);
}

Machine machine(int memory_mb, double megabytes_per_second, double latency_seconds, double speed) {
  const double rate = megabytes_per_second * 1e6;
  return {{memory_mb, rate, rate, latency_seconds, kColdStartSeconds, kBaseMemoryBytes}, speed};
}

std::vector<Machine> machines(const PaperProfileOptions& options) {
  std::vector<Machine> result;
  if (options.platform == PaperPlatform::kAlibaba) {
    constexpr std::pair<int, double> kSpeeds[] = {{256, 0.1}, {512, 0.2}, {1024, 0.4}, {3072, 1}};
    const double fastest = amdahl(2, options.serial_share);
    for (const auto& [memory_mb, speed] : kSpeeds)
      result.push_back(machine(memory_mb, 50, 0.05, speed * fastest));
    return result;
  }
  const auto spec = aws_lambda_spec();
  for (const int memory_mb : spec.memory_options_mb) {
    const double speed = amdahl(vcpus(spec, memory_mb), options.serial_share);
    result.push_back(machine(memory_mb, 70, 0.04, speed));
  }
  return result;
}

std::uint64_t bytes(double values) {
  return static_cast<std::uint64_t>(std::llround(values * kBytesPerValue));
}

LayerTiming timing(const ChainLayer& layer, double speed, const PaperProfileOptions& options) {
  const auto samples = static_cast<double>(options.micro_batch_size);
  const double moved = kBytesPerValue * (samples * layer.moved + layer.parameters);
  LayerTiming result;
  result.forward_seconds =
      (samples * layer.flops / (options.flops_per_second * options.efficiency) +
       moved / options.memory_bytes_per_second) /
      speed;
  result.backward_seconds = 2 * result.forward_seconds;
  result.update_seconds =
      3 * kBytesPerValue * layer.parameters / options.memory_bytes_per_second / speed;
  return result;
}

ProfiledLayer profiled(const ChainLayer& layer, double input, std::int64_t micro_batch_size) {
  const auto samples = static_cast<double>(micro_batch_size);
  ProfiledLayer result;
  result.name = layer.name;
  result.kind = layer.kind;
  result.parameter_bytes = bytes(layer.parameters);
  result.buffer_bytes = static_cast<std::uint64_t>(layer.buffer_bytes);
  result.activation_bytes = bytes(samples * layer.kept);
  result.workspace_bytes = bytes(samples * (input + layer.output));  // gradients of both
  result.output_bytes = bytes(samples * layer.output);
  return result;
}

std::string description(const PaperProfileOptions& options) {
  return fmt::format(
      "synthetic: bytes from the layers' shapes; forward = flops at {:g} GFLOP/s * {:g} a vCPU + "
      "bytes at {:g} GB/s a vCPU, serial share {:g}, backward twice that; {}",
      options.flops_per_second / 1e9, options.efficiency, options.memory_bytes_per_second / 1e9,
      options.serial_share,
      options.platform == PaperPlatform::kAlibaba
          ? "3,072 MB are 2 vCPUs, 50 MB/s and 50 ms (Liu et al. 2023)"
          : "1,769 MB are one vCPU, 70 MB/s and 40 ms (Liu et al. 2023)");
}

}  // namespace

ModelProfile paper_profile(std::string_view name, const PaperProfileOptions& options) {
  if (options.micro_batch_size < 1)
    fail(ErrorCode::kInvalidArgument, "a micro-batch of {} samples", options.micro_batch_size);
  const auto hardware = machines(options);
  ModelProfile profile;
  profile.model = name;
  profile.platform = options.platform == PaperPlatform::kAlibaba ? "aliyun-fc" : "aws-lambda";
  profile.source = description(options);
  profile.micro_batch_size = options.micro_batch_size;
  profile.optimizer = "sgd";
  for (const auto& each : hardware) profile.options.push_back(each.option);
  double input = 0;
  for (const auto& layer : paper_model(name)) {
    auto& result = profile.layers.emplace_back(profiled(layer, input, options.micro_batch_size));
    for (const auto& each : hardware) result.timings.push_back(timing(layer, each.speed, options));
    input = layer.output;
  }
  return profile;
}

}  // namespace funcpipe
