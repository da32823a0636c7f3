#include "net/http_server.h"

#include <array>
#include <atomic>
#include <optional>
#include <unordered_set>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <sys/socket.h>

#include "base/error.h"

namespace funcpipe {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::uint32_t kMaxHeaderBytes = 64 * 1024;
constexpr auto kDrainTime = std::chrono::seconds(5);

HttpRequest from_beast(http::request<http::string_body>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.target = std::string(message.target());
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

http::response<http::string_body> to_beast(HttpResponse&& response, unsigned version, bool keep) {
  http::response<http::string_body> message(static_cast<http::status>(response.status), version);
  for (const auto& [name, value] : response.headers) message.insert(name, value);
  message.body() = std::move(response.body);
  message.keep_alive(keep);
  if (response.status != 204) message.prepare_payload();
  return message;
}

// Whether the peer has closed: a readable socket that gives no byte.
bool peer_has_closed(int socket) {
  char byte = 0;
  const auto got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace

// Accepts, and owns the set of open connections.
class HttpServer::Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(EventLoop& loop, HttpServerOptions options, Handler handler)
      : context_(loop.context()),
        acceptor_(context_),
        options_(std::move(options)),
        handler_(std::move(handler)) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), options_.port);
    error_code error;
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      fail(ErrorCode::kUnavailable, "cannot listen on 127.0.0.1:{}: {}", options_.port,
           error.message());
    }
  }

  void accept();
  void close();
  void forget(const std::shared_ptr<Connection>& connection) { connections_.erase(connection); }

  bool open() const { return acceptor_.is_open(); }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  asio::io_context& context() { return context_; }
  const HttpServerOptions& options() const { return options_; }
  const Handler& handler() const { return handler_; }

 private:
  asio::io_context& context_;
  tcp::acceptor acceptor_;
  HttpServerOptions options_;
  Handler handler_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
};

// One request and its way back. Outlives its connection if a Responder does.
class HttpServer::Responder::Exchange {
 public:
  Exchange(std::weak_ptr<Connection> connection, asio::io_context& context, unsigned version,
           bool keep)
      : connection_(std::move(connection)), context_(context), version_(version), keep_(keep) {}
  ~Exchange();

  void send(HttpResponse response);
  void on_disconnect(std::function<void()> gone) { gone_ = std::move(gone); }
  bool alive() const { return !done_.load() && !connection_.expired(); }
  void disconnected() {
    if (!done_.exchange(true) && gone_) std::exchange(gone_, nullptr)();
  }
  void cancel() {
    done_ = true;
    gone_ = nullptr;
  }

 private:
  std::weak_ptr<Connection> connection_;
  asio::io_context& context_;
  unsigned version_;
  bool keep_;
  std::atomic<bool> done_{false};
  std::function<void()> gone_;  // touched on the loop only
};

// Reads a request, hands it over, watches the peer, writes the answer, and again.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::weak_ptr<Listener> listener, std::uint64_t max_body_bytes)
      : socket_(std::move(socket)),
        listener_(std::move(listener)),
        max_body_bytes_(max_body_bytes) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kMaxHeaderBytes);
    parser_->body_limit(max_body_bytes_);
    http::async_read_header(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->take_header(error); });
  }

  void write(http::response<http::string_body> message) {
    auto owned = std::make_shared<http::response<http::string_body>>(std::move(message));
    http::async_write(socket_, *owned,
                      [self = shared_from_this(), owned](error_code error, std::size_t) {
                        self->written(error, owned->keep_alive());
                      });
  }

  void close() {
    close_socket();
    if (const auto exchange = exchange_.lock()) exchange->disconnected();
    if (const auto listener = listener_.lock()) listener->forget(shared_from_this());
  }

  // The server ends: nobody is told.
  void abandon() {
    close_socket();
    if (const auto exchange = exchange_.lock()) exchange->cancel();
  }

 private:
  void close_socket() {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  void take_header(error_code error) {
    if (error == http::error::body_limit) return refuse();
    if (error) return close();
    if (parser_->get()[http::field::expect] == "100-continue") return ask_for_body();
    read_body();
  }

  void ask_for_body() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(socket_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        error ? self->close() : self->read_body();
                      });
  }

  void read_body() {
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (error == http::error::body_limit) return self->refuse();
                       error ? self->close() : self->handle();
                     });
  }

  void handle() {
    const auto listener = listener_.lock();
    if (!listener || !listener->open()) return close();
    http::request<http::string_body> message = parser_->release();
    auto exchange = std::make_shared<Responder::Exchange>(weak_from_this(), listener->context(),
                                                          message.version(), message.keep_alive());
    exchange_ = exchange;
    const Handler handler = listener->handler();  // a copy: it may end the server
    handler(from_beast(std::move(message)), Responder(exchange));
    if (exchange->alive()) watch_peer(exchange);
  }

  void watch_peer(const std::weak_ptr<Responder::Exchange>& watched) {
    socket_.async_wait(
        tcp::socket::wait_read, [self = shared_from_this(), watched](error_code error) {
          const auto exchange = watched.lock();
          if (error || !exchange || !exchange->alive() || exchange != self->exchange_.lock())
            return;
          if (peer_has_closed(self->socket_.native_handle())) self->close();
        });
  }

  void written(error_code error, bool keep) {
    if (error || !keep) return close();
    read();
  }

  // Answers 413 and reads on for a while: a peer that is still sending would otherwise see its
  // connection reset instead of the answer.
  void refuse() {
    const auto listener = listener_.lock();
    if (!listener) return close();
    auto owned = std::make_shared<http::response<http::string_body>>(
        to_beast(HttpResponse(listener->options().too_large), 11, false));
    http::async_write(socket_, *owned,
                      [self = shared_from_this(), owned](error_code error, std::size_t) {
                        if (error) return self->close();
                        error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
                        self->start_drain();
                      });
  }

  void start_drain() {
    timer_.emplace(socket_.get_executor(), kDrainTime);
    timer_->async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->close();
    });
    drain();
  }

  void drain() {
    socket_.async_read_some(asio::buffer(waste_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (!error) return self->drain();
                              self->timer_->cancel();
                              self->close();
                            });
  }

  tcp::socket socket_;
  std::weak_ptr<Listener> listener_;
  std::uint64_t max_body_bytes_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::weak_ptr<Responder::Exchange> exchange_;  // the current one
  std::optional<asio::steady_timer> timer_;
  std::array<char, 16384> waste_;
};

void HttpServer::Listener::accept() {
  acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
    if (!self->open()) return;
    if (!error) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      const auto connection =
          std::make_shared<Connection>(std::move(socket), self, self->options_.max_body_bytes);
      self->connections_.insert(connection);
      connection->read();
    }
    self->accept();
  });
}

void HttpServer::Listener::close() {
  error_code ignored;
  acceptor_.close(ignored);
  handler_ = nullptr;
  for (const auto& connection : std::exchange(connections_, {})) connection->abandon();
}

void HttpServer::Responder::Exchange::send(HttpResponse response) {
  if (done_.exchange(true) || connection_.expired()) return;
  asio::dispatch(context_, [connection = connection_, version = version_, keep = keep_,
                            answer = std::move(response)]() mutable {
    if (const auto open = connection.lock())
      open->write(to_beast(std::move(answer), version, keep));
  });
}

HttpServer::Responder::Exchange::~Exchange() {
  if (done_.exchange(true) || connection_.expired()) return;
  asio::post(context_, [connection = connection_] {
    if (const auto open = connection.lock()) open->close();
  });
}

void HttpServer::Responder::send(HttpResponse response) const {
  exchange_->send(std::move(response));
}
bool HttpServer::Responder::alive() const { return exchange_->alive(); }
void HttpServer::Responder::on_disconnect(std::function<void()> gone) const {
  exchange_->on_disconnect(std::move(gone));
}

HttpServer::HttpServer(EventLoop& loop, HttpServerOptions options, Handler handler)
    : listener_(std::make_shared<Listener>(loop, std::move(options), std::move(handler))) {
  listener_->accept();
}
HttpServer::~HttpServer() { listener_->close(); }
std::uint16_t HttpServer::port() const { return listener_->port(); }

}  // namespace funcpipe
