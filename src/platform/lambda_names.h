// The ways to name a Lambda function.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace funcpipe {

struct FunctionName {
  std::string name;
  std::string qualifier;  // version or alias; may be empty
};

// "name", "name:qualifier", "123456789012:function:name[:qualifier]" or
// "arn:aws:lambda:region:123456789012:function:name[:qualifier]". Nothing for anything else.
std::optional<FunctionName> parse_function_name(std::string_view text);

}  // namespace funcpipe
