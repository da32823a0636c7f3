// When this process began, loading of its libraries included.
#pragma once

#include <string>

#include "base/units.h"

namespace funcpipe {

// Time since the kernel started this process (10 ms resolution).
Duration process_age();
// Path of the running executable.
std::string executable_path();

}  // namespace funcpipe
