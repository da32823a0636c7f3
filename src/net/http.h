// HTTP messages, client and server as the rest of the project sees them; curl and Beast stay behind
// these.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace funcpipe {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, compared without case; empty when there is none.
std::string_view header(const HttpHeaders& headers, std::string_view name);

// "%2F" -> "/"; a broken escape stays as it is. Encoding leaves A-Z a-z 0-9 - . _ ~ alone.
std::string percent_decode(std::string_view text);
std::string percent_encode(std::string_view text);

// A request's target taken apart: decoded path segments, decoded query in its order.
struct HttpTarget {
  std::vector<std::string> segments;  // "/a/b%2Fc" -> "a", "b/c"
  HttpHeaders query;
};
HttpTarget parse_target(std::string_view target);

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // client: a whole URL; server: path and query as sent
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;
  std::string body;
};

}  // namespace funcpipe
