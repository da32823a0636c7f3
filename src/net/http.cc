#include "net/http.h"

#include <algorithm>
#include <cctype>

namespace funcpipe {
namespace {

bool equal_without_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(unsigned char c) {
  return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
}

// Calls `take` with every part of `text` between separators.
template <typename Take>
void split(std::string_view text, char separator, Take take) {
  while (true) {
    const auto end = text.find(separator);
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string_view header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (equal_without_case(key, name)) return value;
  }
  return {};
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
                        hex_digit(text[i + 2]) >= 0;
    if (!escape) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
    i += 2;
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const unsigned char c : text) {
    if (is_unreserved(c)) {
      encoded += static_cast<char>(c);
    } else {
      encoded += '%';
      encoded += kDigits[c >> 4];
      encoded += kDigits[c & 15];
    }
  }
  return encoded;
}

HttpTarget parse_target(std::string_view target) {
  HttpTarget result;
  const auto question = target.find('?');
  std::string_view path = target.substr(0, question);
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  if (!path.empty()) {
    split(path, '/',
          [&](std::string_view part) { result.segments.push_back(percent_decode(part)); });
  }
  if (question == std::string_view::npos) return result;
  split(target.substr(question + 1), '&', [&](std::string_view part) {
    if (part.empty()) return;
    const auto equals = part.find('=');
    const auto value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    result.query.emplace_back(percent_decode(part.substr(0, equals)), percent_decode(value));
  });
  return result;
}

}  // namespace funcpipe
