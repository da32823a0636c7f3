// From a job as written to what can be run: model, datasets and plan are opened and checked against
// each other before anything starts or costs money.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/plan.h"
#include "data/dataset_index.h"
#include "nn/model_archive.h"

namespace funcpipe {

struct PreparedJob {
  JobSpec job;       // dataset and store URLs made absolute
  std::string yaml;  // the job as run, with --set applied
  ModelArchive model;
  DatasetIndex train;
  DatasetIndex test;         // zero records: none
  Plan plan;                 // no stages: left to the planner, and not made yet
  nlohmann::json plan_file;  // the same, with how it came about
};

// Every error names what is wrong where: the job's file and line, the cut, the memory a stage
// needs, the dataset and the model that do not fit.
PreparedJob prepare_job(const std::string& path, const std::vector<std::string>& overrides);
// The same for what does not run the job's plan: that is neither made nor checked.
PreparedJob prepare_job_without_plan(const std::string& path,
                                     const std::vector<std::string>& overrides);

// Makes `plan` the job's. Its memory has been reckoned with by whoever made it.
void adopt_plan(PreparedJob& prepared, Plan plan, nlohmann::json plan_file);

// A folder, and a store's URL or path, as another process may open it, whatever its working
// directory.
std::string url_of(const std::filesystem::path& folder);
std::string absolute_url(const std::string& url);

}  // namespace funcpipe
