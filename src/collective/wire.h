// The wire format of a message: what one worker leaves for another in the store. docs/formats.md
// has the byte layout.
//
// A small header (magic, version, checksum, element types, shapes) followed by raw little-endian
// tensor bytes, each tensor at a multiple of 64 bytes, so that a received object is used where it
// lies. Nothing is copied on either side.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace funcpipe {

// An encoded message as the parts of one object. The parts borrow from the bundle and from
// `header`.
struct EncodedMessage {
  Buffer header;
  std::vector<ByteView> parts;
};
EncodedMessage encode(const TensorBundle& bundle);

// The tensors of the result are views into `object`, which the result owns. Throws Error(kDataLoss)
// saying what is wrong when the object is not a whole, undamaged message.
TensorBundle decode(Buffer object);

}  // namespace funcpipe
