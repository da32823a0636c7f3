#include "cli/interrupt.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace funcpipe {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

constexpr int kExitInterrupted = 130;

}  // namespace

InterruptGuard::InterruptGuard() {
  const auto set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::jthread([this](std::stop_token stop) { watch(std::move(stop)); });
}

InterruptGuard::~InterruptGuard() = default;

void InterruptGuard::watch(std::stop_token stop) {
  const auto set = stop_signals();
  const timespec tick{0, 100'000'000};
  while (!stop.stop_requested()) {
    if (sigtimedwait(&set, nullptr, &tick) < 0) continue;
    if (source_.stop_requested()) std::_Exit(kExitInterrupted);
    source_.request_stop();
  }
}

}  // namespace funcpipe
