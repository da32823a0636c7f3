// A blocking HTTP/1.1 client that keeps its connections.
//
// One object per thread: not thread-safe, but a call can be cancelled from any thread through its
// stop token, at once. Whatever status the server answers is a response, not an error. Errors are
// Error(kUnavailable) (no connection, or it broke; trying again may help), kDeadlineExceeded,
// kCancelled, and kInvalidArgument for a malformed URL.
#pragma once

#include <memory>
#include <stop_token>

#include "base/units.h"
#include "net/http.h"

namespace funcpipe {

struct HttpClientOptions {
  Duration connect_timeout = std::chrono::seconds(5);
  bool use_proxy = true;  // of the environment (http_proxy ...); off for loopback
};

class HttpClient {
 public:
  explicit HttpClient(const HttpClientOptions& options = {});
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  // `timeout` covers the whole call; zero: none, for long polls. Content-Length is set, "Expect:
  // 100-continue" never sent.
  HttpResponse send(const HttpRequest& request, Duration timeout, const std::stop_token& stop = {});

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace funcpipe
