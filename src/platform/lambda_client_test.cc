#include "platform/lambda_client.h"

#include <future>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "net/base64.h"
#include "net/http_server.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using Kind = InvocationOutcome::Kind;

TEST(LambdaClient, UnderstandsEveryKindOfAnswer) {
  struct Case {
    HttpResponse response;
    Kind kind;
    std::string type;
  };
  const HttpHeaders failed = {{"x-amz-function-error", "Unhandled"}};
  const std::vector<Case> cases = {
      {{200, {}, "{}"}, Kind::kSucceeded, ""},
      {{200, failed, R"({"errorType":"Function.Bad","errorMessage":"m"})"},
       Kind::kFunctionError,
       "Function.Bad"},
      {{200, failed, R"({"errorType":"Sandbox.Timedout","errorMessage":"m"})"},
       Kind::kTimedOut,
       "Sandbox.Timedout"},
      {{200, failed,
        R"({"errorMessage":"2026-01-01T00:00:00Z 1-2 Task timed out after 3.00 seconds"})"},
       Kind::kTimedOut,
       ""},
      {{200, failed, R"({"errorType":"Runtime.OutOfMemory","errorMessage":"m"})"},
       Kind::kOutOfMemory,
       "Runtime.OutOfMemory"},
      {{200, failed, R"({"errorType":"Runtime.ExitError","errorMessage":"m"})"},
       Kind::kCrashed,
       "Runtime.ExitError"},
      {{200, failed, "not json"}, Kind::kFunctionError, ""},
      {{404, {{"x-amzn-errortype", "ResourceNotFoundException:http://x/"}}, R"({"Message":"m"})"},
       Kind::kRejected,
       "ResourceNotFoundException"},
      {{413, {{"x-amzn-errortype", "RequestTooLargeException"}}, R"({"message":"m"})"},
       Kind::kRejected,
       "RequestTooLargeException"},
      {{429, {{"x-amzn-errortype", "TooManyRequestsException"}}, "{}"},
       Kind::kThrottled,
       "TooManyRequestsException"},
      {{500, {{"x-amzn-errortype", "ServiceException"}}, "{}"},
       Kind::kUnreachable,
       "ServiceException"},
      {{503, {}, "<html>"}, Kind::kUnreachable, ""},
  };
  for (const auto& one : cases) {
    const auto outcome = outcome_of_response(one.response);
    EXPECT_EQ(outcome.kind, one.kind) << one.response.body;
    EXPECT_EQ(outcome.error_type, one.type);
    EXPECT_EQ(outcome.error_message.empty(), one.kind == Kind::kSucceeded) << one.response.body;
  }
}

TEST(LambdaClient, ReadsUsageFromTheLogTail) {
  const std::string log =
      "line\nREPORT RequestId: r\tDuration: 5.00 ms\tBilled Duration: 5 ms\tMemory Size: 512 "
      "MB\t\n";
  const auto outcome = outcome_of_response({200, {{"X-Amz-Log-Result", base64_encode(log)}}, "1"});
  EXPECT_EQ(outcome.log_tail, log);
  EXPECT_EQ(outcome.usage.billed, 5ms);
  EXPECT_EQ(outcome.usage.memory_mb, 512);
}

// Takes requests and never answers.
class SilentServer {
 public:
  SilentServer()
      : server_(std::make_unique<HttpServer>(
            loop_, HttpServerOptions{},
            [this](HttpRequest request, HttpServer::Responder responder) {
              kept_.push_back(std::move(responder));
              arrived_.set_value(std::move(request));
            })),
        thread_([this] { loop_.run(); }) {}
  ~SilentServer() {
    loop_.post([this] {
      kept_.clear();
      server_.reset();
      loop_.stop();
    });
  }
  std::string endpoint() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }
  HttpRequest request() { return arrived_.get_future().get(); }

 private:
  EventLoop loop_;
  std::vector<HttpServer::Responder> kept_;
  std::promise<HttpRequest> arrived_;
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
};

TEST(LambdaClient, SendsASignedRequestAndGivesUpPromptly) {
  SilentServer server;
  LambdaClient client({.endpoint = server.endpoint(), .sign = [](HttpRequest& request) {
                         request.headers.emplace_back("Authorization", "signed");
                       }});
  auto invocation = client.invoke("a:b", R"({"x":1})");
  const auto request = server.request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/2015-03-31/functions/a%3Ab/invocations");
  EXPECT_EQ(header(request.headers, "X-Amz-Invocation-Type"), "RequestResponse");
  EXPECT_EQ(header(request.headers, "X-Amz-Log-Type"), "Tail");
  EXPECT_EQ(header(request.headers, "Authorization"), "signed");
  EXPECT_EQ(request.body, R"({"x":1})");
  const SteadyClock clock;
  EXPECT_FALSE(invocation->wait(Deadline::after(clock, 20ms)));
  const auto start = clock.now();
  invocation.reset();
  EXPECT_LT(clock.now() - start, 500ms);
}

TEST(LambdaClient, TellsWhenNobodyAnswers) {
  LambdaClient client({.endpoint = "http://127.0.0.1:1"});
  const auto outcome = client.invoke("f", "{}")->wait(Deadline::after(SteadyClock(), 5s));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->kind, Kind::kUnreachable);
  EXPECT_EQ(outcome->error_type, "unavailable");
}

}  // namespace
}  // namespace funcpipe
