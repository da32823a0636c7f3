// The objects of a directory store in key order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/object_store.h"

namespace funcpipe {

// The first objects below `root` whose key begins with `prefix` and is greater than `after`: one
// more than `limit`, if there are so many, to show that more follow. Reads only folders that can
// hold some. What others remove meanwhile may be left out. Throws Error naming a folder that cannot
// be read.
std::vector<ObjectInfo> list_directory(const std::string& root, std::string_view prefix,
                                       std::string_view after, std::size_t limit);

}  // namespace funcpipe
