// Layer merging: a profile of fewer, larger layers. What the authors do to shrink their programme
// (Liu et al. 2023, section 4.3); here only to show what it costs, since the exact solver does
// without.
#pragma once

#include <vector>

#include "core/plan.h"
#include "core/profile.h"

namespace funcpipe {

struct MergedProfile {
  ModelProfile profile;
  std::vector<int> first_layer;  // in the original, of each merged layer; then its layer count
};

// Merges neighbours until `layers` are left (none if there are fewer). Cut-aware: the pair that
// goes first is the one with the least computation for every byte that a cut between them would
// send, so cheap cuts and large layers last. Throws Error(kInvalidArgument) for less than one.
MergedProfile merge_layers(const ModelProfile& profile, int layers);

// The same plan in layers of the original model.
Plan unmerged(Plan plan, const MergedProfile& merged);

}  // namespace funcpipe
