#include "platform/lambda_names.h"

#include <regex>

namespace funcpipe {

std::optional<FunctionName> parse_function_name(std::string_view text) {
  // As the pattern of the FunctionName parameter in the service's API model.
  static const std::regex pattern(
      "(?:(?:arn:aws[a-z-]*:lambda:[a-z0-9-]+:)?\\d{12}:function:)?"
      "([a-zA-Z0-9_-]+)(?::(\\$LATEST|[a-zA-Z0-9_-]+))?");
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_match(text.begin(), text.end(), match, pattern)) return std::nullopt;
  return FunctionName{match[1].str(), match[2].str()};
}

}  // namespace funcpipe
