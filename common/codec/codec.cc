#include "common/codec/codec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/codebook.h"
#include "common/codec/codebook_codecs.h"
#include "common/codec/dense.h"
#include "common/codec/dense_payload.h"
#include "common/codec/sparse_payload.h"
#include "common/codec/top_k.h"

namespace thinwire {
namespace {

absl::StatusOr<std::unique_ptr<const Codec>> MakeSparseCodec(const CodecSpec& spec) {
  if (!IsDense(spec.values)) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(spec.id)),
                                                   " values: want a dense codec, got ",
                                                   std::string(CodecName(spec.values))));
  }
  CodecSpec of_values = spec;
  of_values.id = spec.values;
  absl::StatusOr<std::unique_ptr<const Codec>> values = MakeCodec(of_values);
  if (!values.ok()) return values.status();
  if (spec.id == CodecId::kTopK) {
    return MakeTopKCodec(spec.density, spec.least_sent, spec.indices, *std::move(values));
  }
  return MakeRandomKCodec(spec.density, spec.unbiased, *std::move(values));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Codec>> MakeCodec(const CodecSpec& spec) {
  if (!IsDense(spec.id)) return MakeSparseCodec(spec);
  if (!Codebook::IsOf(spec.id)) return MakeDenseCodec(spec.id);
  switch (spec.id) {
    case CodecId::kInt8:
      return MakeInt8Codec();
    case CodecId::kOneBit:
    case CodecId::kOneBitSign:
      return MakeOneBitCodec(spec.id, spec.onebit_group);
    case CodecId::kTwoBit:
      return MakeTwoBitCodec(spec.twobit_threshold);
    case CodecId::kQsgd:
      return MakeQsgdCodec(spec.qsgd_levels);
    case CodecId::kLog4:
      return MakeLog4Codec();
    default:
      return MakeTableCodec(spec.id);
  }
}

absl::Status CheckPayload(const ByteChain& payload, size_t count) {
  if (payload.empty()) {
    return absl::InvalidArgumentError("payload: want a codec byte, got 0 bytes");
  }
  const absl::StatusOr<CodecId> id = CodecIdFromWire(static_cast<uint32_t>(payload.At(0)));
  if (!id.ok()) return id.status();
  if (!IsDense(*id)) return CheckSparse(payload, count);
  const DensePayload dense = {payload, 0, count};
  const absl::StatusOr<size_t> want = DensePayloadBytes(dense);
  if (!want.ok()) return want.status();
  if (payload.size() == *want) return CheckDensePayload(dense);
  return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(*id)), " payload of ", count,
                                                 " values: want ", *want, " bytes, got ",
                                                 payload.size()));
}

CodecId PayloadCodec(const ByteChain& payload) { return static_cast<CodecId>(payload.At(0)); }

bool PayloadIsSparse(const ByteChain& payload) { return !IsDense(PayloadCodec(payload)); }

bool PayloadIsFinite(const ByteChain& payload, size_t count) {
  return PayloadIsWithin(payload, count, std::numeric_limits<float>::max());
}

bool PayloadIsWithin(const ByteChain& payload, size_t count, float limit) {
  if (PayloadIsSparse(payload)) return SparseIsWithin(payload, count, limit);
  return DensePayloadIsWithin({payload, 0, count}, limit);
}

void DecodePayload(const ByteChain& payload, std::span<float> out) {
  DecodePayloadScaled(payload, 1.0f, out);
}

void DecodePayloadScaled(const ByteChain& payload, float scale, std::span<float> out) {
  if (PayloadIsSparse(payload)) return DecodeSparse(payload, scale, out);
  DecodeDensePayload({payload, 0, out.size()}, 0, scale, out);
}

void DecodePayloadInBlocks(const ByteChain& payload, float scale, size_t count,
                           BlockFunction block) {
  if (PayloadIsSparse(payload)) return DecodeSparseInBlocks(payload, scale, count, block);
  std::array<float, kDecodedBlock> values;
  for (size_t first = 0; first < count; first += values.size()) {
    const auto part = std::span(values).first(std::min(values.size(), count - first));
    DecodeDensePayload({payload, 0, count}, first, scale, part);
    block(first, part);
  }
}

void DecodePayloadAdd(const ByteChain& payload, float scale, std::span<float> sum) {
  if (PayloadIsSparse(payload)) return DecodeSparseAdd(payload, scale, sum);
  DecodeDensePayloadAdd({payload, 0, sum.size()}, scale, sum);
}

}  // namespace thinwire
