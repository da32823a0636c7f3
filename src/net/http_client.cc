#include "net/http_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/error.h"

namespace funcpipe {
namespace {

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

void initialise_curl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK)
    fail(ErrorCode::kInternal, "cannot initialise libcurl: {}", curl_easy_strerror(result));
}

void append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) fail(ErrorCode::kResourceExhausted, "no memory for HTTP headers");
  (void)list.release();
  list.reset(longer);
}

HeaderList header_list(const HttpRequest& request) {
  HeaderList list;
  append(list, "Expect:");
  if (header(request.headers, "Content-Type").empty()) append(list, "Content-Type:");
  for (const auto& [name, value] : request.headers) {
    append(list, value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  return list;
}

std::size_t take_body(char* data, std::size_t, std::size_t size, void* body) {
  static_cast<std::string*>(body)->append(data, size);
  return size;
}

// A status line starts a new block: only the headers of the last answer count (after a 100).
std::size_t take_header(char* data, std::size_t, std::size_t size, void* target) {
  auto& headers = *static_cast<HttpHeaders*>(target);
  std::string_view line(data, size);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) headers.clear();
  const auto colon = line.find(':');
  if (line.starts_with("HTTP/") || colon == std::string_view::npos) return size;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  headers.emplace_back(line.substr(0, colon), value);
  return size;
}

ErrorCode code_of(CURLcode result) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return ErrorCode::kInvalidArgument;
    case CURLE_OUT_OF_MEMORY:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kUnavailable;
  }
}

long milliseconds(Duration duration) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<long>(std::max<std::chrono::milliseconds::rep>(whole, 1));
}

}  // namespace

class HttpClient::Connection {
 public:
  explicit Connection(const HttpClientOptions& options) : options_(options) {
    initialise_curl();
    easy_.reset(curl_easy_init());
    multi_.reset(curl_multi_init());
    if (!easy_ || !multi_) fail(ErrorCode::kResourceExhausted, "no memory for an HTTP client");
  }

  HttpResponse send(const HttpRequest& request, Duration timeout, const std::stop_token& stop) {
    const HeaderList headers = header_list(request);
    HttpResponse response;
    prepare(request, timeout, headers, response);
    const CURLcode result = perform(stop);
    if (result != CURLE_OK) throw error_of(request, timeout, result);
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    return response;
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(easy_.get(), option, value);
  }

  void prepare(const HttpRequest& request, Duration timeout, const HeaderList& headers,
               HttpResponse& response) {
    curl_easy_reset(easy_.get());  // keeps the connections, which belong to multi_
    set(CURLOPT_URL, request.target.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TCP_NODELAY, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(options_.connect_timeout));
    if (timeout > Duration::zero()) set(CURLOPT_TIMEOUT_MS, milliseconds(timeout));
    if (!options_.use_proxy) set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&response.body));
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&response.headers));
    set(CURLOPT_ERRORBUFFER, error_text_.data());
    error_text_[0] = '\0';
    set_method(request);
  }

  void set_method(const HttpRequest& request) {
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
    if (request.method == "POST" || request.method == "PUT" || !request.body.empty()) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.data());
    }
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  // Runs the prepared transfer. A wake-up before the poll makes the poll return at once, so a stop
  // is never missed.
  CURLcode perform(const std::stop_token& stop) {
    curl_multi_add_handle(multi_.get(), easy_.get());
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    int running = 1;
    while (running > 0 && !stop.stop_requested()) {
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) break;
      if (running > 0) curl_multi_poll(multi_.get(), nullptr, 0, kLongestPollMs, nullptr);
    }
    const CURLcode result = running > 0 ? CURLE_ABORTED_BY_CALLBACK : finished_result();
    curl_multi_remove_handle(multi_.get(), easy_.get());
    return result;
  }

  CURLcode finished_result() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return message != nullptr ? message->data.result : CURLE_ABORTED_BY_CALLBACK;
  }

  Error error_of(const HttpRequest& request, Duration timeout, CURLcode result) const {
    const std::string call = fmt::format("{} {}", request.method, request.target);
    if (result == CURLE_ABORTED_BY_CALLBACK) return {ErrorCode::kCancelled, call + ": cancelled"};
    const std::string reason =
        error_text_[0] != '\0' ? error_text_.data() : curl_easy_strerror(result);
    const ErrorCode code = code_of(result);
    if (code == ErrorCode::kDeadlineExceeded && timeout > Duration::zero()) {
      return {code,
              fmt::format("{}: no answer within {} ({})", call, format_duration(timeout), reason),
              Error::Retry::kMayHelp};
    }
    return {code, fmt::format("{}: {}", call, reason),
            code == ErrorCode::kInvalidArgument ? Error::Retry::kNever : Error::Retry::kMayHelp};
  }

  static constexpr int kLongestPollMs = 60 * 60 * 1000;  // curl shortens it to its own timers

  HttpClientOptions options_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unique_ptr<CURL, FreeEasy> easy_;  // goes before multi_
  std::array<char, CURL_ERROR_SIZE> error_text_{};
};

HttpClient::HttpClient(const HttpClientOptions& options)
    : connection_(std::make_unique<Connection>(options)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

HttpResponse HttpClient::send(const HttpRequest& request, Duration timeout,
                              const std::stop_token& stop) {
  return connection_->send(request, timeout, stop);
}

}  // namespace funcpipe
