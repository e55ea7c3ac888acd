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
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/byte_chain.h"

namespace thinwire {

// The first byte of a payload, and the read_codec of the wire. Numbers are never used again for
// something else.
enum class CodecId : uint8_t {
  kFp32 = 1,
  kFp16 = 2,
  kBf16 = 3,
  kFp8E5m2 = 4,
  kFp8E4m3 = 5,
  kTopK = 6,
};

std::string_view CodecName(CodecId id);  // "fp8_e5m2"
std::ostream& operator<<(std::ostream& out, CodecId id);

// The id that a byte of the wire stands for. Errors: InvalidArgument "codec 77: want 1 to 6".
absl::StatusOr<CodecId> CodecIdFromWire(uint32_t value);

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
  virtual size_t Encode(std::span<const float> values, std::span<std::byte> out) const = 0;
  // The same of v = RESIDUAL + GRADIENT; RESIDUAL becomes v - decode(payload), in as few passes as
  // the codec can. REQUIRES: residual.size() == gradient.size().
  virtual size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                                std::span<std::byte> out) const = 0;
};

// What a codec is made from; `name` as in config.proto.
struct CodecSpec {
  CodecId id = CodecId::kFp32;
  double density = 0.01;            // topk: the part of the values that is sent, in (0, 1]
  CodecId values = CodecId::kFp32;  // topk: a dense codec

  bool operator==(const CodecSpec&) const = default;
};

// Errors: InvalidArgument that names the codecs there are.
absl::StatusOr<CodecId> ParseCodecName(std::string_view name);
bool IsDense(CodecId id);

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

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEC_H_
