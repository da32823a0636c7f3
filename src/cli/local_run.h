// What commands share that run functions on the local platform.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "core/job.h"
#include "platform/local_host_config.h"

namespace funcpipe {

// A prefix unique among all runs that ever share a store, so that none reads another's objects.
std::string unique_run_id(const std::string& name);

// A host with one function for each memory option, as the job describes the platform.
LocalHostConfig local_host_config(const LocalPlatformSpec& local, const std::set<int>& memory_mb,
                                  const std::filesystem::path& logs);

// A store's folder that is of no use after the run: removed at the end of this object's life.
class OwnStore {
 public:
  // Empty: nothing to remove.
  explicit OwnStore(std::filesystem::path path) : path_(std::move(path)) {}
  ~OwnStore();
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;

 private:
  const std::filesystem::path path_;
};

}  // namespace funcpipe
