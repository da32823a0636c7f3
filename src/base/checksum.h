// Checksums that guard messages, shards and checkpoints against damage (not against an adversary).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/buffer.h"

namespace funcpipe {

std::uint64_t checksum(ByteView bytes);  // XXH3, 64 bits
std::uint64_t checksum(
    std::span<const ByteView> parts);     // of the parts as if they were one run of bytes
std::string to_hex(std::uint64_t value);  // 16 lower-case digits

}  // namespace funcpipe
