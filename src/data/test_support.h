// What the tests of this folder share: files made by hand, random tensors, expected errors, Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/rng.h"
#include "core/tensor.h"
#include "data/array.h"

namespace funcpipe::testing {

// Checks that `body` throws Error with this code and a text that contains each of `words`.
void expect_error(ErrorCode code, const std::vector<std::string>& words,
                  const std::function<void()>& body);

std::string gzip(std::string_view bytes);

// An IDX file: magic, sizes and the data as given (big-endian already).
std::string idx_file(int type, const std::vector<std::uint32_t>& shape, std::string_view data);

// Random bytes as a tensor; bool holds 0 and 1.
Array random_array(Rng& rng, DType dtype, Shape shape);

Buffer to_buffer(std::string_view text);

// An uncompressed .tar, a .tar.gz or a .zip, by the name's end.
void write_archive(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, std::string>>& members);

// Runs Debian's Python, where `python/funcpipe` is the first folder of the module path, and returns
// what it prints. A failure of the script fails the test.
std::string run_python(const std::string& script, const std::vector<std::string>& arguments = {});

}  // namespace funcpipe::testing
