// Why a worker failed, in words that help.
#pragma once

#include <string>

#include "base/error.h"
#include "core/plan.h"
#include "platform/function_platform.h"

namespace funcpipe {

// One paragraph for people: who, what, and what to do. `memory_mb` and `max_memory_used_mb` come
// from the outcome's usage.
Error failure_of(const WorkerId& worker, const InvocationOutcome& outcome);

// Of several failures of one run, the one to report: what a platform did to a worker comes before
// what a worker said, and that before a worker's complaint that somebody else did not answer.
// Smaller is better.
int failure_rank(const InvocationOutcome& outcome);

}  // namespace funcpipe
