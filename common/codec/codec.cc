#include "common/codec/codec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/codec/dense.h"
#include "common/codec/top_k.h"

namespace thinwire {
namespace {

constexpr size_t kBodyOffset = 1;

// The values of a dense payload.
DenseValues ValuesOf(const ByteChain& payload) {
  return {PayloadCodec(payload), payload, kBodyOffset};
}

absl::Status CheckDensePayload(CodecId id, const ByteChain& payload, size_t count) {
  const size_t want = kBodyOffset + DenseBytes(id, count);
  if (payload.size() != want) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(id)), " payload of ",
                                                   count, " values: want ", want, " bytes, got ",
                                                   payload.size()));
  }
  return CheckDense(ValuesOf(payload));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec) {
  if (spec.id == CodecId::kTopK) return MakeTopKCodec(spec.density, spec.values);
  return MakeDenseCodec(spec.id);
}

absl::Status CheckPayload(const ByteChain& payload, size_t count) {
  if (payload.empty()) {
    return absl::InvalidArgumentError("payload: want a codec byte, got 0 bytes");
  }
  const absl::StatusOr<CodecId> id = CodecIdFromWire(static_cast<uint32_t>(payload.At(0)));
  if (!id.ok()) return id.status();
  if (*id == CodecId::kTopK) return CheckTopK(payload, count);
  return CheckDensePayload(*id, payload, count);
}

CodecId PayloadCodec(const ByteChain& payload) { return static_cast<CodecId>(payload.At(0)); }

bool PayloadIsFinite(const ByteChain& payload, size_t count) {
  return PayloadIsWithin(payload, count, std::numeric_limits<float>::max());
}

bool PayloadIsWithin(const ByteChain& payload, size_t count, float limit) {
  if (PayloadCodec(payload) == CodecId::kTopK) return TopKIsWithin(payload, count, limit);
  return DenseIsWithin(ValuesOf(payload), count, limit);
}

void DecodePayload(const ByteChain& payload, std::span<float> out) {
  DecodePayloadScaled(payload, 1.0f, out);
}

void DecodePayloadScaled(const ByteChain& payload, float scale, std::span<float> out) {
  if (PayloadCodec(payload) == CodecId::kTopK) return DecodeTopK(payload, scale, out);
  DecodeDense(ValuesOf(payload), 0, scale, out);
}

void DecodePayloadInBlocks(const ByteChain& payload, float scale, size_t count,
                           BlockFunction block) {
  if (PayloadCodec(payload) == CodecId::kTopK) {
    return DecodeTopKInBlocks(payload, scale, count, block);
  }
  std::array<float, kDecodedBlock> values;
  for (size_t first = 0; first < count; first += values.size()) {
    const auto part = std::span(values).first(std::min(values.size(), count - first));
    DecodeDense(ValuesOf(payload), first, scale, part);
    block(first, part);
  }
}

void DecodePayloadAdd(const ByteChain& payload, float scale, std::span<float> sum) {
  if (PayloadCodec(payload) == CodecId::kTopK) return DecodeTopKAdd(payload, scale, sum);
  DecodeDenseAdd(ValuesOf(payload), scale, sum);
}

bool PayloadIsSparse(const ByteChain& payload) { return !IsDense(PayloadCodec(payload)); }

void ForEachSent(const ByteChain& payload, size_t count, SentFunction block) {
  ForEachSentOfTopK(payload, count, block);
}

}  // namespace thinwire
