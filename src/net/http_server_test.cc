#include "net/http_server.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/http_client.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

// A loop on its own thread with a server made there.
class Server {
 public:
  explicit Server(HttpServer::Handler handler, HttpServerOptions options = {}) {
    server_ = std::make_unique<HttpServer>(loop_, std::move(options), std::move(handler));
    port_ = server_->port();
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~Server() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    loop_.post([this] {
      server_.reset();
      loop_.stop();
    });
    thread_.join();
  }
  EventLoop& loop() { return loop_; }
  std::string url(std::string_view path) const {
    return fmt::format("http://127.0.0.1:{}{}", port_, path);
  }

 private:
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::jthread thread_;
};

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kInternal;
}

void echo(HttpRequest request, HttpServer::Responder responder) {
  responder.send(
      {201,
       {{"X-Method", request.method}, {"X-Seen", std::string(header(request.headers, "x-sent"))}},
       request.target + "|" + request.body});
}

const HttpClientOptions kLoopback{.connect_timeout = 1s, .use_proxy = false};

TEST(HttpServer, AnswersOverOneKeptConnection) {
  Server server(echo);
  HttpClient client(kLoopback);
  for (const auto* method : {"GET", "POST", "PUT", "DELETE"}) {
    const std::string body = std::string_view(method) == "GET" ? "" : "payload";
    const auto response =
        client.send({method, server.url("/a/b?c=d"), {{"X-Sent", "yes"}}, body}, 5s);
    EXPECT_EQ(response.status, 201);
    EXPECT_EQ(response.body, "/a/b?c=d|" + body);
    EXPECT_EQ(header(response.headers, "x-method"), method);
    EXPECT_EQ(header(response.headers, "x-seen"), "yes");
  }
}

TEST(HttpServer, CarriesBinaryBodiesUpToTheLimitAndRefusesMore) {
  HttpServerOptions options;
  options.max_body_bytes = 6 << 20;
  options.too_large = {413, {{"X-Why", "size"}}, "{}"};
  Server server(echo, options);
  HttpClient client(kLoopback);
  std::string body(6 << 20, 'x');
  body[100] = '\0';
  EXPECT_EQ(client.send({"POST", server.url("/"), {}, body}, 10s).body, "/|" + body);
  body += std::string(4 << 20, 'y');
  const auto refused = client.send({"POST", server.url("/"), {}, body}, 10s);
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(header(refused.headers, "x-why"), "size");
  EXPECT_EQ(client.send({"POST", server.url("/"), {}, "small"}, 10s).body, "/|small");
}

TEST(HttpServer, AnswersLaterFromAnotherThread) {
  std::vector<std::jthread> threads;
  Server server([&](HttpRequest, HttpServer::Responder responder) {
    threads.emplace_back([responder] {
      EXPECT_TRUE(responder.alive());
      responder.send({200, {}, "late"});
      responder.send({500, {}, "second answer"});
    });
  });
  HttpClient client(kLoopback);
  EXPECT_EQ(client.send({"GET", server.url("/"), {}, ""}, 5s).body, "late");
  EXPECT_EQ(client.send({"GET", server.url("/"), {}, ""}, 5s).body, "late");
  server.stop();
}

TEST(HttpServer, TellsWhenThePeerLeaves) {
  std::promise<void> arrived, gone;
  std::optional<HttpServer::Responder> kept;
  Server server([&](HttpRequest, HttpServer::Responder responder) {
    responder.on_disconnect([&] { gone.set_value(); });
    kept = responder;
    arrived.set_value();
  });
  std::jthread caller([&](std::stop_token stop) {
    HttpClient client(kLoopback);
    EXPECT_EQ(code_of([&] {
                client.send({"GET", server.url("/"), {}, ""}, 0s, stop);
              }),
              ErrorCode::kCancelled);
  });
  arrived.get_future().wait();
  EXPECT_TRUE(kept->alive());
  caller.request_stop();
  ASSERT_EQ(gone.get_future().wait_for(5s), std::future_status::ready);
  EXPECT_FALSE(kept->alive());
  kept->send({200, {}, "nobody listens"});
}

TEST(HttpServer, ClosesTheConnectionOfAForgottenRequest) {
  Server server([](HttpRequest, HttpServer::Responder) {});
  HttpClient client(kLoopback);
  EXPECT_EQ(code_of([&] {
              client.send({"GET", server.url("/"), {}, ""}, 5s);
            }),
            ErrorCode::kUnavailable);
}

TEST(HttpServer, StopsAndFreesItsPort) {
  std::optional<HttpServer::Responder> kept;
  std::promise<void> arrived;
  auto server = std::make_unique<Server>([&](HttpRequest, HttpServer::Responder responder) {
    kept = responder;
    arrived.set_value();
  });
  const std::string url = server->url("/");
  std::jthread caller([&] {
    HttpClient client(kLoopback);
    EXPECT_EQ(code_of([&] { client.send({"GET", url, {}, ""}, 10s); }), ErrorCode::kUnavailable);
  });
  arrived.get_future().wait();
  server->stop();
  caller.join();
  HttpClient client(kLoopback);
  EXPECT_EQ(code_of([&] { client.send({"GET", url, {}, ""}, 1s); }), ErrorCode::kUnavailable);
  kept.reset();
}

TEST(HttpServer, TakesABurstOfConnections) {
  std::vector<HttpServer::Responder> waiting;
  Server server([&](HttpRequest, HttpServer::Responder responder) {
    waiting.push_back(std::move(responder));
    if (waiting.size() < 64) return;
    for (const auto& one : waiting) one.send({200, {}, "go"});
    waiting.clear();
  });
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 64; ++i) {
      callers.emplace_back([&] {
        HttpClient client(kLoopback);
        if (client.send({"GET", server.url("/"), {}, ""}, 10s).body == "go") ++answered;
      });
    }
  }
  EXPECT_EQ(answered, 64);
}

TEST(HttpServer, RefusesATakenPort) {
  Server server(echo);
  EventLoop loop;
  HttpServerOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(server.url("").substr(17)));
  EXPECT_EQ(code_of([&] { HttpServer second(loop, options, echo); }), ErrorCode::kUnavailable);
}

TEST(HttpClient, KeepsItsDeadlineAndCancelsPromptly) {
  std::vector<HttpServer::Responder> kept;
  Server server(
      [&](HttpRequest, HttpServer::Responder responder) { kept.push_back(std::move(responder)); });
  HttpClient client(kLoopback);
  EXPECT_EQ(code_of([&] {
              client.send({"GET", server.url("/"), {}, ""}, 50ms);
            }),
            ErrorCode::kDeadlineExceeded);

  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    source.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code_of([&] {
              client.send({"GET", server.url("/"), {}, ""}, 0s, source.get_token());
            }),
            ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
  EXPECT_EQ(code_of([&] {
              client.send({"GET", server.url("/"), {}, ""}, 0s, source.get_token());
            }),
            ErrorCode::kCancelled);
  EXPECT_EQ(code_of([&] {
              client.send({"GET", "nonsense://x", {}, ""}, 1s);
            }),
            ErrorCode::kInvalidArgument);
  server.stop();
}

TEST(EventLoop, RunsTimersInOrderAndForgetsCancelledOnes) {
  EventLoop loop;
  std::string seen;
  auto second = loop.after(20ms, [&] { seen += "b"; });
  auto first = loop.after(5ms, [&] { seen += "a"; });
  auto cancelled = loop.after(1ms, [&] { seen += "x"; });
  cancelled.reset();
  auto last = loop.after(30ms, [&] { loop.stop(); });
  loop.post([&] { seen += "0"; });
  loop.run();
  EXPECT_EQ(seen, "0ab");
}

TEST(EventLoop, WatchesADescriptorUntilItsEnd) {
  EventLoop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::string seen;
  EventLoop::Handle watch;
  watch = loop.watch(ends[0], [&] {
    char byte = 0;
    if (::read(ends[0], &byte, 1) == 1) {
      seen += byte;
      return;
    }
    watch.reset();
    loop.stop();
  });
  loop.post([&] {
    ASSERT_EQ(::write(ends[1], "hi", 2), 2);
    ::close(ends[1]);
  });
  loop.run();
  EXPECT_EQ(seen, "hi");
  ::close(ends[0]);
}

}  // namespace
}  // namespace funcpipe
