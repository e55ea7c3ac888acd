// Codec: floats <-> bytes. A payload is one shard's encoded bytes and says its own codec:
//
//   payload = codec id (1 byte) | the codec's bytes
//
// How many values it holds is known from the shard. Encoding takes a Codec object, which carries
// its settings (a density, a value codec); decoding takes only the payload, so a worker may change
// its codec at any step. Payloads come from peers: CheckPayload must have passed before anything
// else reads one, and whatever passes it, the other functions digest without reading or writing out
// of bounds.
//
// A payload may lie in several pieces that values straddle (ByteChain). Dense codecs decode it
// where it lies.
#ifndef THINWIRE_COMMON_CODEC_CODEC_H_
#define THINWIRE_COMMON_CODEC_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"
#include "common/codec/codec_names.h"

namespace thinwire {

// Numbers that random codecs draw from. The same turn and values give the same bytes, so a replay
// repeats them.
struct Turn {
  uint64_t shared_draw = 0;  // the same for all workers of a step of a shard
  uint64_t own_draw = 0;     // this worker's own
};

// What a codec remembers of one shard from one call to the next. Speed depends on it, bytes never.
struct CodecMemory {
  uint32_t collect_from = 0;  // topk: kernels/top_k.h
};

// Immutable, thread-safe. One call handles a whole shard.
class Codec {
 public:
  virtual ~Codec() = default;

  virtual CodecId id() const = 0;
  // Whether Decode(Encode(v)) is v for every v that is not a NaN.
  virtual bool lossless() const = 0;
  // The most bytes a payload of COUNT values can take.
  virtual size_t MaxPayloadBytes(size_t count) const = 0;
  // Writes the payload of VALUES to OUT and returns its length. REQUIRES: out.size() >=
  // MaxPayloadBytes(count). Values that are not finite are the caller's to keep away (a worker
  // checks before it encodes).
  virtual size_t Encode(std::span<const float> values, const Turn& turn,
                        std::span<std::byte> out) const = 0;
  // The same of v = RESIDUAL + GRADIENT; RESIDUAL becomes v - decode(payload), in as few passes as
  // the codec can. MEMORY is of this shard, or fresh. REQUIRES: residual.size() ==
  // gradient.size().
  virtual size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                                const Turn& turn, CodecMemory& memory,
                                std::span<std::byte> out) const = 0;
};

// Errors: InvalidArgument for a density outside (0, 1] or a value codec that is not dense.
absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec);

// Whether PAYLOAD is a well-formed payload of COUNT values. Errors: InvalidArgument that says what
// was wanted and what came ("fp32 payload of 1024 values: want 4097 bytes, got 4000"). Allocates
// nothing that grows with a number read from the payload.
absl::Status CheckPayload(const ByteChain& payload, size_t count);

// The rest REQUIRE that CheckPayload(payload, count) passed, count being out.size() where there is
// an OUT.

CodecId PayloadCodec(const ByteChain& payload);
// Whether every value is finite.
bool PayloadIsFinite(const ByteChain& payload, size_t count);
// Whether every value is finite and of a magnitude up to LIMIT, at the same cost. REQUIRES: LIMIT
// is a finite number of at least 0.
bool PayloadIsWithin(const ByteChain& payload, size_t count, float limit);
// out = decode(payload)
void DecodePayload(const ByteChain& payload, std::span<float> out);
// out = scale * decode(payload): the first gradient of a round, in one pass.
void DecodePayloadScaled(const ByteChain& payload, float scale, std::span<float> out);
// The same for whoever needs each value once and no array of them: calls block(first, values) with
// the values from number FIRST, in order, at most kDecodedBlock at a time. They live until the call
// returns.
using BlockFunction = absl::FunctionRef<void(size_t first, std::span<const float> values)>;
inline constexpr size_t kDecodedBlock = 2048;  // 8 KiB: stays in the first cache
void DecodePayloadInBlocks(const ByteChain& payload, float scale, size_t count,
                           BlockFunction block);
// sum += scale * decode(payload)
void DecodePayloadAdd(const ByteChain& payload, float scale, std::span<float> sum);

// Whether the payload says of some indices what their values are, and of the others nothing.
bool PayloadIsSparse(const ByteChain& payload);
// Calls block(indices, values) for what a sparse payload of COUNT values sent, indices rising, a
// few hundred at a time. They live until the call returns. REQUIRES: PayloadIsSparse(payload).
using SentFunction =
    absl::FunctionRef<void(std::span<const uint32_t> indices, std::span<const float> values)>;
void ForEachSent(const ByteChain& payload, size_t count, SentFunction block);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_H_
