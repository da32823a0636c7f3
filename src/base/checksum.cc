#include "base/checksum.h"

#include <memory>

#include <fmt/core.h>
#include <xxhash.h>

namespace funcpipe {

std::uint64_t checksum(ByteView bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::uint64_t checksum(std::span<const ByteView> parts) {
  if (parts.size() == 1) return checksum(parts.front());
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (const auto part : parts) XXH3_64bits_update(state.get(), part.data(), part.size());
  return XXH3_64bits_digest(state.get());
}

std::string to_hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

}  // namespace funcpipe
