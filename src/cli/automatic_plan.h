// The plan of a job that leaves it to the planner.
#pragma once

#include <filesystem>
#include <stop_token>

#include "cli/job_setup.h"

namespace funcpipe {

// Takes the profile that the job names, or measures one and writes it to `profile`; plans; shows
// the plan on stderr and makes it the job's. Throws Error for what keeps it from being made, and
// kCancelled when `stop` is requested.
void plan_automatically(PreparedJob& prepared, const std::filesystem::path& profile,
                        const std::stop_token& stop);

}  // namespace funcpipe
