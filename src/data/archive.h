// Members of .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz, .tar.zst and .zip files, read into memory.
// Nothing is ever written to disk, so names inside an archive need not be trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/buffer.h"

namespace funcpipe {

struct ArchiveMember {
  std::string name;  // '/'-separated, without a leading "./"
  Buffer data;
};

// Whether `path` is a regular file with the content (not the name) of an archive.
bool is_archive(const std::filesystem::path& path);

// Names of the regular files inside, in the archive's order. This and the next throw
// Error(kNotFound) for no file, kInvalidArgument for one that is no archive, kDataLoss for one that
// is truncated or damaged.
std::vector<std::string> list_archive(const std::filesystem::path& path);

// The members that `wanted` accepts, in the archive's order; what it rejects is skipped, without
// decompressing it where the format (zip) permits.
std::vector<ArchiveMember> read_archive(const std::filesystem::path& path,
                                        const std::function<bool(const std::string& name)>& wanted);

}  // namespace funcpipe
