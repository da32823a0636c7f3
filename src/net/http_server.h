// An HTTP/1.1 server on a loopback port, run by an EventLoop, with answers that may come much later
// (long polls).
//
// The server lives on the loop's thread. A Responder may be answered from any thread. Bodies above
// the limit are refused (413) without reaching the handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "net/http.h"

namespace funcpipe {

struct HttpServerOptions {
  std::uint16_t port = 0;  // of 127.0.0.1; 0: any free one
  std::uint64_t max_body_bytes = 8ULL * 1024 * 1024;
  HttpResponse too_large{413, {{"Content-Type", "text/plain"}}, "request too large\n"};
};

class HttpServer {
 public:
  // The way back to the peer of one request. Copyable. When all copies are gone unanswered, the
  // connection is closed. Thread-safe but for on_disconnect().
  class Responder {
   public:
    void send(HttpResponse response) const;  // the first answer counts, later ones are dropped
    // False once the peer has closed its connection, or the answer is on its way.
    bool alive() const;
    // Runs `gone` on the loop, at most once, if the peer leaves before an answer; never after
    // send(). Call it on the loop.
    void on_disconnect(std::function<void()> gone) const;

   private:
    friend class HttpServer;
    class Exchange;
    explicit Responder(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
    std::shared_ptr<Exchange> exchange_;
  };
  using Handler = std::function<void(HttpRequest, Responder)>;

  // Listens at once; throws Error(kUnavailable) when the port is taken. `handler` runs on the loop.
  HttpServer(EventLoop& loop, HttpServerOptions options, Handler handler);
  // Closes the port and every connection, without calling on_disconnect. Answers that were sent
  // before are written out as far as the sockets take them without waiting.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

 private:
  class Connection;
  class Listener;
  std::shared_ptr<Listener> listener_;
};

}  // namespace funcpipe
