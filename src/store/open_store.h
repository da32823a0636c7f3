// Stores by URL: what a job file, a payload or a command line names.
#pragma once

#include <memory>
#include <string>

#include "store/object_store.h"

namespace funcpipe {

enum class OpenMode {
  kCreate,    // make the folder if it is missing
  kExisting,  // throw Error(kNotFound) if it is
};

// "file:///abs/path" or a plain path: a folder of this machine. Throws Error(kInvalidArgument) for
// an unknown kind of URL, naming the known ones, and what the store's constructor throws.
std::unique_ptr<ObjectStore> open_store(const std::string& url, OpenMode mode = OpenMode::kCreate);

}  // namespace funcpipe
