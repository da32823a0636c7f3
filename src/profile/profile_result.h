// From what was measured to a profile.
#pragma once

#include <string>

#include "core/job.h"
#include "core/manifest.h"
#include "core/profile.h"
#include "profile/profile_progress.h"

namespace funcpipe {

// Every option of `progress` must be complete. Bytes of a layer come from the largest option that
// runs it. Where not even an empty worker runs, the links are those of the next larger option.
// Throws Error(kResourceExhausted) when there is a layer that no option runs.
ModelProfile make_profile(const ProfileProgress& progress, const ModelManifest& manifest,
                          const JobSpec& job, const std::string& platform);

}  // namespace funcpipe
