// Objects per second and bytes per second of the stores of one machine.
//
//   store_bench [--benchmark_filter=...]
//
// The directory store lies in the system's temporary folder (TMPDIR).
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/file.h"
#include "store/directory_store.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

class DirectoryGround {
 public:
  ObjectStore& store() { return store_; }

 private:
  TemporaryDirectory folder_;
  DirectoryStore store_{folder_.path()};
};

class MemoryGround {
 public:
  ObjectStore& store() { return store_; }

 private:
  MemoryStore store_;
};

void set_rates(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

Buffer content(const benchmark::State& state) {
  Buffer buffer(static_cast<std::size_t>(state.range(0)));
  std::fill(buffer.span().begin(), buffer.span().end(), std::byte{42});
  return buffer;
}

// A message's life but for its reading: a new object under a new key, removed later, in a folder
// that holds others.
template <typename Ground>
void put_if_absent_and_remove(benchmark::State& state) {
  Ground ground;
  const auto bytes = content(state);
  put(ground.store(), "run/m/other", {});
  std::int64_t number = 0;
  for (auto _ : state) {
    const auto key = fmt::format("run/m/{}", number++);
    put_if_absent(ground.store(), key, bytes.view());
    ground.store().remove(key);
  }
  set_rates(state);
}

// The same in a folder of its own, which a directory store has to make and to remove.
template <typename Ground>
void put_if_absent_and_remove_with_folder(benchmark::State& state) {
  Ground ground;
  const auto bytes = content(state);
  put(ground.store(), "run/m/other", {});
  std::int64_t number = 0;
  for (auto _ : state) {
    const auto key = fmt::format("run/m/{}/x", number++);
    put_if_absent(ground.store(), key, bytes.view());
    ground.store().remove(key);
  }
  set_rates(state);
}

template <typename Ground>
void put_replacing(benchmark::State& state) {
  Ground ground;
  const auto bytes = content(state);
  for (auto _ : state) put(ground.store(), "run/x", bytes.view());
  set_rates(state);
}

template <typename Ground>
void get(benchmark::State& state) {
  Ground ground;
  put(ground.store(), "run/x", content(state).view());
  for (auto _ : state) benchmark::DoNotOptimize(ground.store().get("run/x"));
  set_rates(state);
}

template <typename Ground>
void get_missing(benchmark::State& state) {
  Ground ground;
  put(ground.store(), "run/x", content(state).view());
  for (auto _ : state) benchmark::DoNotOptimize(ground.store().get("run/y"));
  state.SetItemsProcessed(state.iterations());
}

#define FUNCPIPE_STORE_BENCHMARK(function, ground) \
  BENCHMARK_TEMPLATE(function, ground)->Arg(1'000)->Arg(1'000'000)->Arg(64'000'000)->UseRealTime()

FUNCPIPE_STORE_BENCHMARK(put_if_absent_and_remove, DirectoryGround);
BENCHMARK_TEMPLATE(put_if_absent_and_remove_with_folder, DirectoryGround)
    ->Arg(1'000)
    ->UseRealTime();
FUNCPIPE_STORE_BENCHMARK(put_replacing, DirectoryGround);
FUNCPIPE_STORE_BENCHMARK(get, DirectoryGround);
BENCHMARK_TEMPLATE(get_missing, DirectoryGround)->Arg(1'000)->UseRealTime();
FUNCPIPE_STORE_BENCHMARK(put_if_absent_and_remove, MemoryGround);
FUNCPIPE_STORE_BENCHMARK(put_replacing, MemoryGround);
FUNCPIPE_STORE_BENCHMARK(get, MemoryGround);
BENCHMARK_TEMPLATE(get_missing, MemoryGround)->Arg(1'000)->UseRealTime();

}  // namespace
}  // namespace funcpipe

BENCHMARK_MAIN();
