// Encodes a shard in fp8_e4m3, scale byte (scale_byte.h) | codes, reading it from memory once.
//
// The scale follows from the largest magnitude, which is known only at the end. So each block is
// encoded with the scale of the largest so far; where a later block needs a larger one, the blocks
// before it are encoded again. The largest of a few thousand values is seldom below half of the
// largest of all, hence that is seldom much. The bytes are those that two passes would write.
//
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_SCALED_ENCODE_H_
#define THINWIRE_COMMON_CODEC_SCALED_ENCODE_H_

#include <cstddef>
#include <span>

namespace thinwire {

// Writes 1 + values.size() bytes to OUT.
void EncodeScaled(std::span<const float> values, std::byte* out);

// The same of v = residual + gradient; residual becomes what was lost of v.
// REQUIRES: residual.size() == gradient.size().
void EncodeScaledFeedback(std::span<const float> gradient, std::span<float> residual,
                          std::byte* out);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SCALED_ENCODE_H_
