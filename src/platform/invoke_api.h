// The AWS Lambda Invoke API of the local host: Invoke, ListFunctions, GetFunction,
// GetFunctionConfiguration. Signatures are not checked.
//
// Beside it GET /_host/state tells about sandboxes and accounts, as JSON. Lives on the loop's
// thread.
#pragma once

#include <string>

#include "base/rng.h"
#include "net/http_server.h"
#include "platform/sandbox_pool.h"

namespace funcpipe {

class InvokeApi {
 public:
  // `isolation` is for /_host/state.
  InvokeApi(EventLoop& loop, const LocalHostConfig& config, const PlatformSpec& spec,
            SandboxPool& pool, std::string isolation);
  std::uint16_t port() const { return server_.port(); }

 private:
  void handle(const HttpRequest& request, const HttpServer::Responder& responder);
  HttpResponse describe(const HttpRequest& request, const HttpTarget& target) const;
  void invoke(const HttpRequest& request, const HttpTarget& target,
              const HttpServer::Responder& responder);
  void start(const LocalFunction& function, const HttpRequest& request, RuntimeEvent event,
             const HttpServer::Responder& responder);
  HttpResponse list_functions(const HttpTarget& target) const;
  HttpResponse host_state() const;
  std::string new_id();

  const LocalHostConfig& config_;
  const PlatformSpec& spec_;
  SandboxPool& pool_;
  std::string isolation_;
  Rng ids_;
  HttpServer server_;
};

}  // namespace funcpipe
