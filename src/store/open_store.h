// Stores by URL: what a job file, a payload or a command line names.
#pragma once

#include <memory>
#include <string_view>

#include "store/object_store.h"

namespace funcpipe {

enum class OpenMode {
  kCreate,    // make the folder if it is missing, and check that it can be written
  kExisting,  // throw Error(kNotFound) if it is missing; it may be read-only
};

//   file:///absolute/path, or a path    a folder of this machine (taken literally: %20 is no space)
//   memory:                             a fresh MemoryStore, not shared with any other
// What looks like a URL (letters and a colon) is one: a folder "a:b" is written ./a:b.
// Throws Error: kUnimplemented for another kind of URL, naming the known ones; kInvalidArgument for
// none or a broken one; and what the store says.
std::unique_ptr<ObjectStore> open_store(std::string_view url, OpenMode mode = OpenMode::kCreate);

}  // namespace funcpipe
