#include "client/gpu/device_codec.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/cuda/runtime/cuda_fixture.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::ExpectSameBits;
using kernels::cuda::Kind;
using kernels::cuda::ValuesOf;

class DeviceCodecTest : public kernels::cuda::CudaTest,
                        public testing::WithParamInterface<CodecSpec> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    auto made = DeviceCodec::Make(GetParam());
    ASSERT_TRUE(made.ok()) << made.status();
    codec_ = *std::move(made);
  }

  // The feedback state of a shard: one copy on the GPU, for the GPU codec, and one copy on the
  // host, for the CPU codec.
  struct Shard {
    explicit Shard(size_t count, const kernels::cuda::Stream& stream)
        : residual(count),
          device_residual(residual, stream),
          threshold(std::vector<uint32_t>(1), stream) {}

    std::vector<float> residual;
    CodecMemory memory;
    CodecMemory device_memory;
    DeviceArray<float> device_residual;
    DeviceArray<uint32_t> threshold;
  };

  // Encodes GRADIENT on the GPU and on the host, with the residuals of SHARD unless SHARD is null,
  // and expects equal payloads and residuals.
  void ExpectSamePayload(const std::vector<float>& gradient, const RandomKeys& keys, Shard* shard) {
    const size_t count = gradient.size();
    std::vector<std::byte> want(codec_->MaxPayloadBytes(count));
    want.resize(shard == nullptr ? codec_->twin().Encode(gradient, keys, want)
                                 : codec_->twin().EncodeFeedback(gradient, shard->residual, keys,
                                                                 shard->memory, want));
    // Derives the alignment of the arrays from keys.per_worker, so that the alignment varies.
    DeviceArray<float> device_gradient(gradient, stream_, keys.per_worker % 4);
    DeviceArray<std::byte> workspace(codec_->WorkspaceBytes(count), stream_);
    DeviceArray<std::byte> out(codec_->MaxPayloadBytes(count), stream_, keys.per_worker % 16);
    DeviceArray<uint32_t> size(1, stream_);
    Expect(codec_->Encode(device_gradient.span(),
                          shard == nullptr ? std::span<float>() : shard->device_residual.span(),
                          keys, shard == nullptr ? nullptr : shard->threshold.data(),
                          shard == nullptr ? nullptr : &shard->device_memory, workspace.span(),
                          out.span(), size.data(), stream_));
    std::vector<std::byte> got = out.Read();
    workspace.Read();  // Read checks that no kernel wrote past the end of the array
    if (shard != nullptr) shard->threshold.Read();
    ASSERT_EQ(size.Read()[0], want.size());
    if (codec_->HasOneLength(count)) {
      ASSERT_EQ(want.size(), got.size());
    }
    got.resize(want.size());
    const auto first_difference = std::ranges::mismatch(got, want).in1 - got.begin();
    ASSERT_EQ(got, want) << "first difference at byte " << first_difference;
    if (shard != nullptr) ExpectSameBits(shard->device_residual.Read(), shard->residual);
  }

  std::unique_ptr<const DeviceCodec> codec_;
};

TEST_P(DeviceCodecTest, PayloadsWithoutFeedbackEqualTheTwins) {
  uint64_t draw = 0;
  for (const size_t count : {0, 1, 7, 31, 32, 33, 4095, 4096, 4097}) {
    SCOPED_TRACE(testing::Message() << count << " values");
    ++draw;
    ExpectSamePayload(ValuesOf(Kind::kRandom, count, static_cast<uint32_t>(draw)), {5 * draw, draw},
                      nullptr);
    if (HasFatalFailure()) return;
  }
}

TEST_P(DeviceCodecTest, PayloadsWithFeedbackEqualTheTwinsForManySteps) {
  for (const size_t count : {0, 1, 33, 600}) {
    Shard shard(count, stream_);
    const uint32_t steps = count < 600 ? 3 : 20;
    for (uint32_t step = 1; step <= steps; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step << " of " << count << " values");
      ExpectSamePayload(Laplace(count, step), {3 * step, step}, &shard);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceCodecTest, PayloadsOfEqualAndSubnormalValuesEqualTheTwins) {
  for (const Kind kind : {Kind::kEqual, Kind::kDenormal}) {
    Shard shard(500, stream_);
    for (uint32_t step = 1; step <= 3; ++step) {
      ExpectSamePayload(ValuesOf(kind, 500, step), {3 * step, step}, &shard);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceCodecTest, PayloadsOfALargeShardEqualTheTwins) {
  // Uses fewer values for codecs with many groups, because the CUDA emulation is slow for them.
  const size_t count = GetParam().onebit_group > 0 ? 3'001 : 20'003;
  Shard shard(count, stream_);
  for (uint32_t step = 1; step <= 3; ++step) {
    ExpectSamePayload(StudentT3(count, step), {step, step}, &shard);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceCodecTest, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& param) { return SpecName(param.param); });

TEST(DeviceCodecSpecTest, ACodecWithoutAGpuEncoderIsRefused) {
  const absl::Status status = CheckDeviceEncoder({.name = "host_only"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("host_only: no GPU encoder"), std::string::npos) << status;
  EXPECT_TRUE(CheckDeviceEncoder(RowOf(CodecId::kTopK)).ok());
}

TEST(DeviceCodecSpecTest, AnInvalidSpecIsRefused) {
  const auto made = DeviceCodec::Make({.id = CodecId::kTopK, .density = 2});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << made.status();
}

}  // namespace
}  // namespace thinwire::client::gpu
