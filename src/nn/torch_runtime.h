// libtorch of this process: its settings, and what `funcpipe doctor` shows about it.
#pragma once

#include <string>

namespace funcpipe {

// Sets the number of threads of one operation, and turns off what would make the first steps slow
// and a cut model's bits differ from the whole one's (profiling executor, parallel interpreter). To
// be called before the first use of libtorch in the process; calling it again may change `threads`.
void configure_torch(int threads);

// Performs one training step of a tiny network (convolution, matrix product), so that whatever
// libtorch sets up at its first use is there.
void use_torch_once();

struct TorchRuntimeFacts {
  std::string libtorch_version;
  std::string cpu_capability;  // of libtorch's own kernels: "AVX2"
  std::string blas_library;    // file that provides sgemm
  std::string blas_kernel;     // of OpenBLAS: "SkylakeX"; empty for another BLAS
  std::string blas_config;     // of OpenBLAS: "OpenBLAS 0.3.21 ... MAX_THREADS=128"
  int threads = 1;
  double gemm_gflops = 0;  // best of a few multiplications of 512 x 512 float32 matrices
};
// Takes about 50 ms.
TorchRuntimeFacts inspect_torch_runtime();

}  // namespace funcpipe
