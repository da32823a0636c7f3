#include "nn/torch_runtime.h"

#include <algorithm>
#include <chrono>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "base/error.h"

namespace funcpipe {
namespace {

std::string library_of(const char* symbol) {
  Dl_info info{};
  void* address = ::dlsym(RTLD_DEFAULT, symbol);
  return address && ::dladdr(address, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

std::string openblas_text(const char* function) {
  const auto call = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, function));
  const char* text = call ? call() : nullptr;
  return text ? text : "";
}

// libtorch says it in its configuration text only.
std::string cpu_capability() {
  constexpr std::string_view kLabel = "CPU capability usage: ";
  const auto text = at::show_config();
  const auto begin = text.find(kLabel);
  if (begin == std::string::npos) return "";
  const auto from = begin + kLabel.size();
  return text.substr(from, text.find('\n', from) - from);
}

double measure_gemm_gflops() {
  constexpr std::int64_t kSize = 512;
  constexpr int kRepeats = 8;
  const at::NoGradGuard no_grad;
  const auto a = at::ones({kSize, kSize});
  auto c = at::empty({kSize, kSize});
  double best = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    at::mm_out(c, a, a);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kSize * kSize * kSize / time.count() * 1e-9);
  }
  return best;
}

}  // namespace

void configure_torch(int threads) {
  if (threads < 1) fail(ErrorCode::kInvalidArgument, "{} compute threads: at least 1", threads);
  at::set_num_threads(threads);
  if (at::get_num_interop_threads() != 1) at::set_num_interop_threads(1);
  torch::jit::getProfilingMode() = false;
}

void use_torch_once() {
  const auto images = at::ones({4, 3, 16, 16});
  const auto filters = at::ones({8, 3, 3, 3}).set_requires_grad(true);
  const auto matrix = at::ones({8 * 14 * 14, 256}).set_requires_grad(true);
  at::conv2d(images, filters).relu().flatten(1).matmul(matrix).sum().backward();
}

TorchRuntimeFacts inspect_torch_runtime() {
  return {.libtorch_version = TORCH_VERSION,
          .cpu_capability = cpu_capability(),
          .blas_library = library_of("sgemm_"),
          .blas_kernel = openblas_text("openblas_get_corename"),
          .blas_config = openblas_text("openblas_get_config"),
          .threads = at::get_num_threads(),
          .gemm_gflops = measure_gemm_gflops()};
}

}  // namespace funcpipe
