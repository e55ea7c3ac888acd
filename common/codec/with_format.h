// WithFormat: from the id of a number format to its type (kernels/number_format.h). Pure:
// thread-safe.
#ifndef THINWIRE_COMMON_CODEC_WITH_FORMAT_H_
#define THINWIRE_COMMON_CODEC_WITH_FORMAT_H_

#include <cstddef>

#include "common/codec/codec_names.h"
#include "kernels/number_format.h"

namespace thinwire {

// What f gives for an object of the codec's number format; fp32's for an id that has none.
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

// The bytes of the scale before the codes, and those of a code.
template <typename Format>
inline constexpr size_t kScaleBytes = Format::kScaled ? 1 : 0;
template <typename Format>
inline constexpr size_t kCodeBytes = sizeof(typename Format::Code);
inline size_t ScaleBytes(CodecId id) {
  return WithFormat(id, []<typename Format>(Format) { return kScaleBytes<Format>; });
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_WITH_FORMAT_H_
