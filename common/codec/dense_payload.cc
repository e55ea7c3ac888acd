#include "common/codec/dense_payload.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/codec/codebook.h"
#include "common/codec/codebook_values.h"
#include "common/codec/dense.h"

namespace thinwire {
namespace {

CodecId IdOf(const DensePayload& dense) {
  return static_cast<CodecId>(dense.payload.At(dense.offset));
}

DenseValues NumbersOf(const DensePayload& dense) {
  return {IdOf(dense), dense.payload, dense.offset + 1};
}

CodebookValues CodesOf(const DensePayload& dense) {
  return {IdOf(dense), dense.payload, dense.offset + 1, dense.count};
}

}  // namespace

absl::StatusOr<size_t> DensePayloadBytes(const DensePayload& dense) {
  if (dense.offset >= dense.payload.size()) {
    return absl::InvalidArgumentError("payload: want a codec byte, got 0 bytes");
  }
  const auto byte = std::to_integer<uint32_t>(dense.payload.At(dense.offset));
  const absl::StatusOr<CodecId> id = CodecIdFromWire(byte);
  if (!id.ok()) return id.status();
  if (!IsDense(*id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a dense codec of the values, got ", std::string(CodecName(*id))));
  }
  if (!Codebook::IsOf(*id)) return 1 + DenseBytes(*id, dense.count);
  const absl::StatusOr<size_t> bytes = CodebookBytes(CodesOf(dense));
  if (!bytes.ok()) return bytes.status();
  return 1 + *bytes;
}

absl::Status CheckDensePayload(const DensePayload& dense) {
  if (Codebook::IsOf(IdOf(dense))) return CheckCodebookValues(CodesOf(dense));
  return CheckDense(NumbersOf(dense));
}

bool DensePayloadIsWithin(const DensePayload& dense, float limit) {
  if (Codebook::IsOf(IdOf(dense))) return CodebookIsWithin(CodesOf(dense), limit);
  return DenseIsWithin(NumbersOf(dense), dense.count, limit);
}

void DecodeDensePayload(const DensePayload& dense, size_t first, float scale,
                        std::span<float> out) {
  if (Codebook::IsOf(IdOf(dense))) return DecodeCodebook(CodesOf(dense), first, scale, out);
  DecodeDense(NumbersOf(dense), first, scale, out);
}

void DecodeDensePayloadAdd(const DensePayload& dense, float scale, std::span<float> sum) {
  if (Codebook::IsOf(IdOf(dense))) return DecodeCodebookAdd(CodesOf(dense), scale, sum);
  DecodeDenseAdd(NumbersOf(dense), scale, sum);
}

}  // namespace thinwire
