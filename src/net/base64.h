// Base64 (RFC 4648, with padding), as it stands in HTTP headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace funcpipe {

std::string base64_encode(std::string_view bytes);
// Nothing when `text` is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace funcpipe
