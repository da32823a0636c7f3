// A job file and its plan as far as they can be read without model and data.
#pragma once

#include <string>
#include <vector>

#include "core/job.h"
#include "core/plan.h"

namespace funcpipe {

// The document with the --set assignments in force.
ConfigNode job_document(const std::string& path, const std::vector<std::string>& overrides);
JobSpec job_from_file(const std::string& path, const std::vector<std::string>& overrides);
// The same job with its plan left to the planner: cuts and sizes that the file gives do not count.
JobSpec job_to_plan(const std::string& path, const std::vector<std::string>& overrides);

// The plan a job gives by hand or by file, for a model of so many layers. Throws
// Error(kInvalidArgument) when it does not fit.
Plan plan_from_spec(const PlanSpec& spec, int layers);

}  // namespace funcpipe
