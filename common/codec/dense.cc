#include "common/codec/dense.h"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/scale_byte.h"
#include "common/codec/scaled_encode.h"
#include "common/codec/value_runs.h"
#include "common/codec/with_format.h"
#include "kernels/convert.h"
#include "kernels/finite.h"
#include "kernels/number_format.h"

namespace thinwire {
namespace {

template <typename Format>
float UnitOf(const DenseValues& values) {
  if constexpr (!Format::kScaled) return 1.0f;
  return UnitOfScaleByte(std::to_integer<uint8_t>(values.payload.At(values.offset)));
}

// Runs over the codes of COUNT values from number FIRST.
template <typename Format, typename Run>
void ForEachCode(Format, const DenseValues& values, size_t first, size_t count, const Run& run) {
  const size_t offset = values.offset + kScaleBytes<Format> + first * kCodeBytes<Format>;
  ForEachRun(values.payload, offset, kCodeBytes<Format>, count, run);
}

class DenseCodec final : public Codec {
 public:
  explicit DenseCodec(CodecId id) : id_(id) {}

  CodecId id() const override { return id_; }
  bool lossless() const override { return id_ == CodecId::kFp32; }
  size_t MaxPayloadBytes(size_t count) const override { return 1 + DenseBytes(id_, count); }

  size_t Encode(std::span<const float> values, const Turn&,
                std::span<std::byte> out) const override {
    out[0] = static_cast<std::byte>(id_);
    EncodeDense(id_, values, out.data() + 1);
    return MaxPayloadBytes(values.size());
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual, const Turn&,
                        CodecMemory&, std::span<std::byte> out) const override {
    out[0] = static_cast<std::byte>(id_);
    EncodeDenseFeedback(id_, gradient, residual, out.data() + 1);
    return MaxPayloadBytes(gradient.size());
  }

 private:
  const CodecId id_;
};

}  // namespace

std::unique_ptr<const Codec> MakeDenseCodec(CodecId id) { return std::make_unique<DenseCodec>(id); }

ByteChain LendFp32(std::span<const float> values, std::shared_ptr<const void> owner) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::byte kId{static_cast<uint8_t>(CodecId::kFp32)};
  ByteChain payload({&kId, 1}, nullptr);
  payload.Append(std::as_bytes(values), std::move(owner));
  return payload;
}

size_t DenseBytes(CodecId id, size_t count) {
  return WithFormat(id, [&]<typename Format>(Format) {
    return kScaleBytes<Format> + count * kCodeBytes<Format>;
  });
}

void EncodeDense(CodecId id, std::span<const float> values, std::byte* out) {
  WithFormat(id, [&]<typename Format>(Format) {
    if constexpr (Format::kScaled) {
      EncodeScaled(values, out);
    } else {
      kernels::Encode<Format>(values, 1.0f, out);
    }
  });
}

void EncodeDenseFeedback(CodecId id, std::span<const float> gradient, std::span<float> residual,
                         std::byte* out) {
  WithFormat(id, [&]<typename Format>(Format) {
    if constexpr (Format::kScaled) {
      EncodeScaledFeedback(gradient, residual, out);
    } else {
      kernels::EncodeFeedback<Format>(gradient, residual, 1.0f, out);
    }
  });
}

absl::Status CheckDense(const DenseValues& values) {
  if (values.id != CodecId::kFp8E4m3) return absl::OkStatus();
  const int byte = std::to_integer<int>(values.payload.At(values.offset));
  if (byte >= kSmallestScaleByte && byte <= kLargestScaleByte) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(CodecName(values.id)),
                                                 " scale byte: want ", int{kSmallestScaleByte},
                                                 " to ", int{kLargestScaleByte}, ", got ", byte));
}

bool DenseIsWithin(const DenseValues& values, size_t count, float limit) {
  return WithFormat(values.id, [&]<typename Format>(Format format) {
    const auto largest = kernels::LargestCodeWithin<Format>(limit / UnitOf<Format>(values));
    bool within = true;
    ForEachCode(format, values, 0, count, [&](const std::byte* codes, size_t, size_t n) {
      within = within && kernels::AllCodesWithin<Format>(codes, n, largest);
    });
    return within;
  });
}

void DecodeDense(const DenseValues& values, size_t first, float scale, std::span<float> out) {
  WithFormat(values.id, [&]<typename Format>(Format format) {
    const float unit = UnitOf<Format>(values);
    ForEachCode(format, values, first, out.size(), [&](const std::byte* codes, size_t i, size_t n) {
      if (scale == 1.0f) return kernels::Decode<Format>(codes, unit, out.subspan(i, n));
      kernels::DecodeScaled<Format>(codes, unit, scale, out.subspan(i, n));
    });
  });
}

void DecodeDenseAdd(const DenseValues& values, float scale, std::span<float> sum) {
  WithFormat(values.id, [&]<typename Format>(Format format) {
    const float unit = UnitOf<Format>(values);
    ForEachCode(format, values, 0, sum.size(), [&](const std::byte* codes, size_t i, size_t n) {
      kernels::DecodeAdd<Format>(codes, unit, scale, sum.subspan(i, n));
    });
  });
}

}  // namespace thinwire
