#include "net/event_loop.h"

#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace funcpipe {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The states are shared with the handlers in flight, which look at `active` before they act.
struct TimerState {
  TimerState(asio::io_context& context, EventLoop::Task then)
      : timer(context), task(std::move(then)) {}
  asio::steady_timer timer;
  EventLoop::Task task;
  bool active = true;
};

class Timer final : public EventLoop::Subscription {
 public:
  explicit Timer(std::shared_ptr<TimerState> state) : state_(std::move(state)) {}
  ~Timer() override {
    state_->active = false;
    state_->timer.cancel();
  }

 private:
  std::shared_ptr<TimerState> state_;
};

struct WatchState {
  WatchState(asio::io_context& context, int fd, EventLoop::Task then)
      : descriptor(context, fd), task(std::move(then)) {}
  asio::posix::stream_descriptor descriptor;
  EventLoop::Task task;
  bool active = true;
};

void wait_readable(const std::shared_ptr<WatchState>& state) {
  state->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                               [state](error_code error) {
                                 if (error || !state->active) return;
                                 state->task();
                                 if (state->active) wait_readable(state);
                               });
}

class Watch final : public EventLoop::Subscription {
 public:
  explicit Watch(std::shared_ptr<WatchState> state) : state_(std::move(state)) {}
  ~Watch() override {
    state_->active = false;
    state_->descriptor.cancel();
    state_->descriptor.release();  // the descriptor is borrowed: do not close it
  }

 private:
  std::shared_ptr<WatchState> state_;
};

}  // namespace

EventLoop::EventLoop() : context_(std::make_unique<asio::io_context>(1)) {}
EventLoop::~EventLoop() = default;

void EventLoop::run() {
  const auto work = asio::make_work_guard(*context_);
  context_->run();
  context_->restart();  // for the next run(); a stop() before this one counted
}

void EventLoop::stop() { context_->stop(); }

void EventLoop::post(Task task) { asio::post(*context_, std::move(task)); }

EventLoop::Handle EventLoop::after(Duration delay, Task task) {
  auto state = std::make_shared<TimerState>(*context_, std::move(task));
  state->timer.expires_after(delay);
  state->timer.async_wait([state](error_code error) {
    if (!error && state->active) state->task();
  });
  return std::make_unique<Timer>(std::move(state));
}

EventLoop::Handle EventLoop::watch(int fd, Task task) {
  auto state = std::make_shared<WatchState>(*context_, fd, std::move(task));
  wait_readable(state);
  return std::make_unique<Watch>(std::move(state));
}

}  // namespace funcpipe
