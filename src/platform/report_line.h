// The REPORT line that ends the log of every Lambda invocation: how a caller learns what was
// billed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "platform/function_platform.h"

namespace funcpipe {

// "REPORT RequestId: <id>\tDuration: 12.34 ms\tBilled Duration: 13 ms\t...\n"
std::string format_report(std::string_view request_id, const Usage& usage);

// From the last REPORT line in `log`; nothing when there is none.
std::optional<Usage> parse_report(std::string_view log);

// Rounded up to whole milliseconds, with initialisation: as custom runtimes are billed.
Duration billed_duration(Duration initialisation, Duration duration);

}  // namespace funcpipe
