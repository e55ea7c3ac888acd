// Codec: encodes the floats of one shard as a payload.
//
//   payload = codec id (1 byte) | body
//
// A Codec contains the settings of its CodecSpec. The first byte of a payload identifies its codec.
// Therefore the decoder requires no settings (common/codec/payload.h), and a worker may use a
// different codec in every step.
#ifndef THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_
#define THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/codec/family/codec_id.h"
#include "common/model/matrix_run.h"

namespace thinwire {

// The keys of the counter-based random generator (kernels/mix_bits.h) that random codecs use. Equal
// keys and values give equal payloads, so a replay is exact.
struct RandomKeys {
  uint64_t shared = 0;      // the key of one step of one shard, equal for all workers
  uint64_t per_worker = 0;  // the key of one step of one shard, different for each worker
};

// The position of one shard in its matrix, and the state that a codec keeps between its calls.
struct CodecMemory {
  // topk: the collection threshold of kernels/select/top_k.h. It affects only speed, never the
  // encoded bytes.
  uint32_t threshold = 0;
  // powersgd: the position of the values in their matrix, set by the caller.
  MatrixRun matrix;
  // powersgd: the matrix Q with which the next power iteration begins; empty: a random one.
  std::vector<float> warm_start;
};

// A codec with its settings. One call encodes a whole shard. Immutable. Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  // Returns whether decoding restores every value except NaN exactly.
  virtual bool lossless() const = 0;
  // Returns whether payloads depend on CodecMemory. Encode then encodes like EncodeFeedback with a
  // new CodecMemory.
  virtual bool needs_memory() const { return false; }
  // Returns the size in bytes of the largest possible payload of COUNT values.
  virtual size_t MaxPayloadBytes(size_t count) const = 0;
  // Writes the payload of VALUES to OUT and returns its length. The encoding of values that are not
  // finite is unspecified. REQUIRES: out.size() >= MaxPayloadBytes(values.size()).
  virtual size_t Encode(std::span<const float> values, const RandomKeys& keys,
                        std::span<std::byte> out) const = 0;
  // Encodes v = RESIDUAL + GRADIENT like Encode, and sets RESIDUAL to v - decode(payload). Makes as
  // few passes over the values as the codec allows. REQUIRES: residual.size() == gradient.size();
  // out.size() >= MaxPayloadBytes(gradient.size()); MEMORY is new or was passed to earlier calls
  // for this shard only.
  virtual size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                                const RandomKeys& keys, CodecMemory& memory,
                                std::span<std::byte> out) const = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_FAMILY_ENCODER_H_
