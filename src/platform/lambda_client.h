// Runs functions through the AWS Lambda Invoke API: the local host's, or AWS itself with a signer.
//
// Thread-safe. Every invocation has a thread and a connection of its own and is never repeated by
// the client: after a broken call the function may still be running.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/http.h"
#include "platform/function_platform.h"

namespace funcpipe {

struct LambdaClientOptions {
  std::string endpoint;  // "http://127.0.0.1:4321"; no slash at the end
  bool use_proxy = false;
  PlatformSpec spec = aws_lambda_spec();
  // Adds the signature to a request that is complete otherwise. Called from several threads at
  // once.
  std::function<void(HttpRequest&)> sign = {};
};

class LambdaClient : public FunctionPlatform {
 public:
  explicit LambdaClient(LambdaClientOptions options) : options_(std::move(options)) {}

  // The object it returns must not outlive this one.
  std::unique_ptr<Invocation> invoke(std::string_view function, std::string payload) override;
  const PlatformSpec& spec() const override { return options_.spec; }

 private:
  LambdaClientOptions options_;
};

// What an answer of the Invoke API (RequestResponse, log type Tail) means.
InvocationOutcome outcome_of_response(HttpResponse response);

}  // namespace funcpipe
