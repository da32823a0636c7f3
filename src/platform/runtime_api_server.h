// The service side of the AWS Lambda Runtime API for one process: translates between HTTP and a
// RuntimeApiHandler. Lives on the loop's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_server.h"

namespace funcpipe {

// One event for a function.
struct RuntimeEvent {
  std::string request_id;
  std::string function_arn;
  std::int64_t deadline_unix_ms = 0;
  std::string client_context;  // JSON, or empty
  std::string trace_id;
  std::string payload;
};

class RuntimeApiHandler {
 public:
  enum class Verdict { kAccepted, kUnknownRequest, kWrongState, kTooLarge };

  virtual ~RuntimeApiHandler() = default;
  // The process asks for its next event: answer `poll` with send_event, now or later.
  virtual void on_next(HttpServer::Responder poll) = 0;
  virtual Verdict on_response(std::string_view request_id, std::string body) = 0;
  virtual Verdict on_error(std::string_view request_id, std::string body) = 0;
  virtual Verdict on_init_error(std::string body) = 0;
};

void send_event(const HttpServer::Responder& poll, const RuntimeEvent& event);

class RuntimeApiServer {
 public:
  RuntimeApiServer(EventLoop& loop, RuntimeApiHandler& handler);
  std::string address() const;  // for AWS_LAMBDA_RUNTIME_API

 private:
  void handle(HttpRequest request, const HttpServer::Responder& responder);
  void handle_post(const std::string& what, HttpRequest request, const std::string& request_id,
                   const HttpServer::Responder& responder);

  RuntimeApiHandler& handler_;
  HttpServer server_;
};

}  // namespace funcpipe
