// One thread that runs tasks, timers and descriptor watches one after the other, so that what lives
// on it needs no locks.
//
// post() and stop() may be called from any thread, everything else only on the loop's thread or
// while it is not running. An exception of a task leaves run(). An idle loop uses no CPU.
#pragma once

#include <functional>
#include <memory>

#include "base/units.h"

namespace boost::asio {
class io_context;
}

namespace funcpipe {

class EventLoop {
 public:
  using Task = std::function<void()>;

  // A timer or watch; destroying it means that its task does not run any more.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  using Handle = std::unique_ptr<Subscription>;

  EventLoop();
  ~EventLoop();

  void run();  // until stop()
  void stop();
  void post(Task task);
  // Once, after `delay`.
  [[nodiscard]] Handle after(Duration delay, Task task);
  // Whenever the borrowed descriptor `fd` is readable, at its end too. `fd` outlives the handle.
  [[nodiscard]] Handle watch(int fd, Task task);

  boost::asio::io_context& context() { return *context_; }  // for src/net

 private:
  std::unique_ptr<boost::asio::io_context> context_;
};

}  // namespace funcpipe
