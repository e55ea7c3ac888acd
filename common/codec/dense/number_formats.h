// Maps the codecs of the dense family to their number formats (kernels/number_format.h). Pure
// functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_DENSE_NUMBER_FORMATS_H_
#define THINWIRE_COMMON_CODEC_DENSE_NUMBER_FORMATS_H_

#include <cstddef>

#include "common/codec/family/codec_id.h"
#include "kernels/number_format.h"

namespace thinwire {

// Returns f(format), where `format` is an object of the number format of codec ID. REQUIRES: ID is
// the id of a dense codec; other ids are treated as fp32.
template <typename F>
auto WithFormat(CodecId id, const F& f) {
  switch (id) {
    case CodecId::kFp16:
      return f(kernels::Fp16());
    case CodecId::kBf16:
      return f(kernels::Bf16());
    case CodecId::kFp8E5m2:
      return f(kernels::Fp8E5m2());
    case CodecId::kFp8E4m3:
      return f(kernels::Fp8E4m3());
    default:
      return f(kernels::Fp32());
  }
}

// kScaleBytes is the size in bytes of the scale that precedes the codes, 0 for a format without
// scale. kCodeBytes is the size in bytes of one code.
template <typename Format>
inline constexpr size_t kScaleBytes = Format::kScaled ? 1 : 0;
template <typename Format>
inline constexpr size_t kCodeBytes = sizeof(typename Format::Code);

// Returns the size in bytes of the scale in a payload of codec ID, 0 if the codec has no scale.
// REQUIRES: ID belongs to the dense family.
inline size_t ScaleBytes(CodecId id) {
  return WithFormat(id, []<typename Format>(Format) { return kScaleBytes<Format>; });
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_DENSE_NUMBER_FORMATS_H_
