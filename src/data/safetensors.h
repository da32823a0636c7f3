// The safetensors format (huggingface.co/docs/safetensors): a 64-bit little-endian header length, a
// JSON header with dtype, shape and offsets of every tensor, then the tensors' bytes without gaps.
//
// Used for dataset shards, checkpoints and the trained weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "core/tensor.h"

namespace funcpipe {

// A file in pieces, ready for ObjectStore::put or write_file without copying the tensors.
struct SafetensorsFile {
  Buffer header;
  std::vector<ByteView> parts;         // the header, then the tensors' bytes, borrowed
  std::vector<std::uint64_t> offsets;  // of each tensor given, from the begin of the file
  std::uint64_t size = 0;              // of the whole file
};

// Deterministic: the header lists tensors in the order given; their bytes are ordered by falling
// element size, from a 64-byte boundary on, so that every tensor is aligned to its element size.
// Throws Error(kInvalidArgument) for a name that stands twice or is reserved, and for a tensor
// whose bytes do not match its shape. The result borrows the tensors' bytes.
SafetensorsFile write_safetensors(std::span<const NamedTensor> tensors,
                                  const std::map<std::string, std::string>& metadata = {});

// The tensors in the header's order, aligned to their element size; they share `bytes` as far as
// its alignment permits. `name` is for error texts. Throws Error(kDataLoss) for a file that is
// truncated or too long, a damaged header, and offsets that overlap, leave gaps or contradict the
// shape; kInvalidArgument for an element type that DType does not have.
NamedTensors parse_safetensors(Buffer bytes, const std::string& name);
NamedTensors read_safetensors(const std::filesystem::path& path);
bool is_safetensors(ByteView bytes);

}  // namespace funcpipe
