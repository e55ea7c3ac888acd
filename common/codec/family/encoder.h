// Codec: encodes the floats of one shard as a payload.
//
//   payload = codec id (1 byte) | body
//
// A Codec carries the settings of its CodecSpec. A payload names its own codec, so decoding needs
// none of them (common/codec/payload.h), and a worker may use another codec at every step.
#ifndef THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_
#define THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/codec/family/codec_id.h"

namespace thinwire {

// Keys of the counter-based random generator (kernels/mix_bits.h) that random codecs draw from.
// Equal keys and values give equal bytes, so a replay repeats them.
struct RandomKeys {
  uint64_t shared = 0;      // the same for all workers at one step of one shard
  uint64_t per_worker = 0;  // another one for each worker
};

// State of one shard that a codec keeps between calls. It changes the speed, never the bytes.
struct CodecMemory {
  uint32_t threshold = 0;  // topk: the collection threshold of kernels/top_k.h
};

// One call encodes a whole shard. Immutable. Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  // Returns whether decoding an encoded value gives that value, for every value except NaN.
  virtual bool lossless() const = 0;
  // Returns the largest possible payload of COUNT values, in bytes.
  virtual size_t MaxPayloadBytes(size_t count) const = 0;
  // Writes the payload of VALUES to OUT and returns its length. Values that are not finite become
  // some value. REQUIRES: out.size() >= MaxPayloadBytes(values.size()).
  virtual size_t Encode(std::span<const float> values, const RandomKeys& keys,
                        std::span<std::byte> out) const = 0;
  // Encodes v = RESIDUAL + GRADIENT like Encode, and sets RESIDUAL to v - decode(payload), in as
  // few passes as the codec can. MEMORY belongs to this shard, or is new. REQUIRES: residual.size()
  // == gradient.size(), and OUT as for Encode.
  virtual size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                                const RandomKeys& keys, CodecMemory& memory,
                                std::span<std::byte> out) const = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_
