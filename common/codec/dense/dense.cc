#include "common/codec/dense/dense.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/codec/dense/number_formats.h"
#include "common/codec/dense/scaled_encode.h"
#include "common/codec/family/code_runs.h"
#include "kernels/convert.h"
#include "kernels/finite.h"
#include "kernels/number_format.h"

namespace thinwire {
namespace {

template <typename Format>
class NumberFormat final : public ValueFormat {
 public:
  absl::StatusOr<size_t> BodyBytes(const ValueBody& body) const override {
    return kScaleBytes<Format> + body.count * kCodeBytes<Format>;
  }

  absl::Status Check(const ValueBody& body) const override {
    if constexpr (Format::kScaled) {
      const int byte = std::to_integer<int>(body.chain.At(body.offset));
      if (byte < kMinScaleByte || byte > kMaxScaleByte) {
        return absl::InvalidArgumentError(absl::StrCat("scale byte out of range (expected ",
                                                       int{kMinScaleByte}, " to ",
                                                       int{kMaxScaleByte}, ", got ", byte, ")"));
      }
    }
    return absl::OkStatus();
  }

  bool IsWithin(const ValueBody& body, float limit) const override {
    const auto largest = kernels::LargestCodeWithin<Format>(limit / Unit(body));
    bool within = true;
    ForEachRun(body, 0, body.count, [&](const std::byte* codes, size_t, size_t n) {
      within = within && kernels::AllCodesWithin<Format>(codes, n, largest);
    });
    return within;
  }

  void Decode(const ValueBody& body, size_t first, float scale,
              std::span<float> out) const override {
    const float unit = Unit(body);
    ForEachRun(body, first, out.size(), [&](const std::byte* codes, size_t i, size_t n) {
      if (scale == 1.0f) return kernels::Decode<Format>(codes, unit, out.subspan(i, n));
      kernels::DecodeScaled<Format>(codes, unit, scale, out.subspan(i, n));
    });
  }

  void DecodeAdd(const ValueBody& body, float scale, std::span<float> sum) const override {
    const float unit = Unit(body);
    ForEachRun(body, 0, sum.size(), [&](const std::byte* codes, size_t i, size_t n) {
      kernels::DecodeAdd<Format>(codes, unit, scale, sum.subspan(i, n));
    });
  }

 private:
  static float Unit(const ValueBody& body) {
    if constexpr (!Format::kScaled) return 1.0f;
    return UnitOfScaleByte(std::to_integer<uint8_t>(body.chain.At(body.offset)));
  }

  // Calls run(codes, i, n) for each run of n consecutive codes in one piece of memory
  // (code_runs.h). The first code of a run is code number i of the requested codes.
  // The runs together contain the codes of the COUNT values from index FIRST on.
  template <typename Run>
  static void ForEachRun(const ValueBody& body, size_t first, size_t count, const Run& run) {
    const size_t offset = body.offset + kScaleBytes<Format> + first * kCodeBytes<Format>;
    ForEachCodeRun(body.chain, offset, kCodeBytes<Format>, count, run);
  }
};

template <typename Format>
constexpr NumberFormat<Format> kNumberFormat{};

template <typename Format>
class DenseCodec final : public Codec {
 public:
  explicit DenseCodec(CodecId id) : id_(id) {}

  CodecId id() const override { return id_; }
  bool lossless() const override { return id_ == CodecId::kFp32; }
  size_t MaxPayloadBytes(size_t count) const override {
    return 1 + kScaleBytes<Format> + count * kCodeBytes<Format>;
  }

  size_t Encode(std::span<const float> values, const RandomKeys&,
                std::span<std::byte> out) const override {
    out[0] = static_cast<std::byte>(id_);
    if constexpr (Format::kScaled) {
      EncodeScaled(values, out.data() + 1);
    } else {
      kernels::Encode<Format>(values, 1.0f, out.data() + 1);
    }
    return MaxPayloadBytes(values.size());
  }

  size_t EncodeFeedback(std::span<const float> gradient, std::span<float> residual,
                        const RandomKeys&, CodecMemory&, std::span<std::byte> out) const override {
    out[0] = static_cast<std::byte>(id_);
    if constexpr (Format::kScaled) {
      EncodeScaledFeedback(gradient, residual, out.data() + 1);
    } else {
      kernels::EncodeFeedback<Format>(gradient, residual, 1.0f, out.data() + 1);
    }
    return MaxPayloadBytes(gradient.size());
  }

 private:
  const CodecId id_;
};

}  // namespace

const ValueFormat* DenseFormat(CodecId id) {
  return WithFormat(
      id, []<typename Format>(Format) -> const ValueFormat* { return &kNumberFormat<Format>; });
}

std::unique_ptr<const Codec> MakeDenseCodec(CodecId id) {
  return WithFormat(id, [&]<typename Format>(Format) -> std::unique_ptr<const Codec> {
    return std::make_unique<DenseCodec<Format>>(id);
  });
}

size_t DenseBytes(CodecId id, size_t count) {
  return WithFormat(id, [&]<typename Format>(Format) {
    return kScaleBytes<Format> + count * kCodeBytes<Format>;
  });
}

}  // namespace thinwire
