// HTTP messages, client and server as the rest of the project sees them; curl and Beast stay behind
// these.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace funcpipe {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first header of that name, compared without case; empty when there is none.
std::string_view header(const HttpHeaders& headers, std::string_view name);

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
