#include "client/gpu/device_codec.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/model/matrix_run.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/cuda/runtime/cuda_fixture.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::ExpectSameBits;
using kernels::cuda::Kind;
using kernels::cuda::ValuesOf;

// The feedback state of a shard: one copy on the GPU, for the GPU codec, and one copy on the host,
// for the CPU codec.
struct Shard {
  Shard(size_t count, const kernels::cuda::Stream& stream, const MatrixRun& matrix = {})
      : residual(count),
        memory{.matrix = matrix},
        device_residual(residual, stream),
        threshold(std::vector<uint32_t>(1), stream),
        device_memory{.threshold = threshold.data(), .matrix = matrix} {}

  std::vector<float> residual;
  CodecMemory memory;
  DeviceArray<float> device_residual;
  DeviceArray<uint32_t> threshold;
  DeviceCodecMemory device_memory;
};

class DeviceCodecTest : public kernels::cuda::CudaTest,
                        public testing::WithParamInterface<CodecSpec> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    codec_ = Make(GetParam());
  }

  static std::unique_ptr<const DeviceCodec> Make(const CodecSpec& spec) {
    auto made = DeviceCodec::Make(spec);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  // Encodes GRADIENT on the GPU and on the host, with the residuals of SHARD unless SHARD is null,
  // and expects equal payloads, residuals and warm starts.
  void ExpectSamePayload(const DeviceCodec& codec, const std::vector<float>& gradient,
                         const RandomKeys& keys, Shard* shard) {
    const size_t count = gradient.size();
    std::vector<std::byte> want(codec.twin().MaxPayloadBytes(count));
    want.resize(shard == nullptr ? codec.twin().Encode(gradient, keys, want)
                                 : codec.twin().EncodeFeedback(gradient, shard->residual, keys,
                                                               shard->memory, want));
    // Derives the alignment of the arrays from keys.per_worker, so that the alignment varies.
    DeviceArray<float> device_gradient(gradient, stream_, keys.per_worker % 4);
    DeviceCodecMemory cold;
    DeviceCodecMemory& memory = shard == nullptr ? cold : shard->device_memory;
    DeviceArray<std::byte> workspace(codec.WorkspaceBytes(count, memory.matrix), stream_);
    DeviceArray<std::byte> out(codec.MaxPayloadBytes(count, memory.matrix), stream_,
                               keys.per_worker % 16);
    DeviceArray<uint32_t> size(1, stream_);
    Expect(codec.Encode(device_gradient.span(),
                        shard == nullptr ? std::span<float>() : shard->device_residual.span(), keys,
                        memory, workspace.span(), out.span(), size.data(), stream_));
    std::vector<std::byte> got = out.Read();
    workspace.Read();  // Read checks that no kernel wrote past the end of the array
    if (shard != nullptr) shard->threshold.Read();
    ASSERT_EQ(size.Read()[0], want.size());
    if (codec.HasOneLength(count)) {
      ASSERT_EQ(want.size(), got.size());
    }
    got.resize(want.size());
    const auto first_difference = std::ranges::mismatch(got, want).in1 - got.begin();
    ASSERT_EQ(got, want) << "first difference at byte " << first_difference;
    if (shard == nullptr) return;
    ExpectSameBits(shard->device_residual.Read(), shard->residual);
    ExpectSameBits(Read(memory.warm_start), shard->memory.warm_start);
  }
  void ExpectSamePayload(const std::vector<float>& gradient, const RandomKeys& keys, Shard* shard) {
    ExpectSamePayload(*codec_, gradient, keys, shard);
  }

  std::vector<float> Read(const kernels::cuda::DeviceBuffer<float>& buffer) {
    std::vector<float> values(buffer.size());
    Expect(CopyToHost(buffer.span(), std::span(values), stream_));
    Expect(stream_.Wait());
    return values;
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

// Returns the specs of all codecs with a GPU encoder.
std::vector<CodecSpec> DeviceSpecs() {
  std::vector<CodecSpec> specs = AllCodecSpecs();
  std::erase_if(specs, [](const CodecSpec& s) { return !RowOf(s.id).has_device_encoder; });
  return specs;
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceCodecTest, testing::ValuesIn(DeviceSpecs()),
                         [](const auto& param) { return SpecName(param.param); });

// powersgd with every value codec, and with several ranks.
std::vector<CodecSpec> PowerSgdSpecs() {
  std::vector<CodecSpec> specs;
  for (const std::string_view name : DenseCodecNames()) {
    specs.push_back({.id = CodecId::kPowerSgd, .values = ParseCodec(name)->id});
  }
  for (const uint32_t rank : {1, 7, 32}) {
    specs.push_back({.id = CodecId::kPowerSgd, .powersgd_rank = rank});
  }
  return specs;
}

using DevicePowerSgdTest = DeviceCodecTest;

TEST_P(DevicePowerSgdTest, RunsOfMatricesEqualTheTwinsForManySteps) {
  // Whole rows; partial first and last rows, of more columns than rows and of fewer; shards that
  // are sent dense, because they have few rows, one column, or a part of a row; and a shard for
  // which also 32 columns of P and Q are short.
  const std::pair<MatrixRun, size_t> runs[] = {
      {{70, 0}, 4200}, {{100, 93}, 3131}, {{44, 1}, 4400},  {{300, 299}, 600},
      {{1, 0}, 500},   {{900, 20}, 500},  {{150, 7}, 22000}};
  size_t low_rank_count = 0;
  for (const auto& [matrix, count] : runs) {
    SCOPED_TRACE(testing::Message() << count << " values from column " << matrix.first_column
                                    << " of " << matrix.columns);
    Shard shard(count, stream_, matrix);
    const uint32_t steps = count > 10'000 ? 2 : 3;
    for (uint32_t step = 0; step < steps; ++step) {
      ExpectSamePayload(Gauss(count, step), {step, 3 * step}, &shard);
      if (HasFatalFailure()) return;
    }
    low_rank_count += shard.memory.warm_start.empty() ? 0 : 1;
  }
  EXPECT_EQ(low_rank_count, GetParam().powersgd_rank == 32 ? 1 : 4);
}

TEST_P(DevicePowerSgdTest, MatricesOfRankOneEqualTheTwinsAtEveryScale) {
  constexpr size_t kSide = 70;
  const std::vector<float> row = Gauss(kSide, 1), column = Gauss(kSide, 2);
  std::vector<float> gradient(kSide * kSide);
  for (const float scale : {1.0f, 1e34f, 1e-20f, 1e-44f, 0.0f}) {
    SCOPED_TRACE(testing::Message() << "scale " << scale);
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = scale * (column[i / kSide] * row[i % kSide]);
    }
    Shard shard(gradient.size(), stream_, {.columns = kSide});
    for (uint32_t step = 0; step < 3; ++step) {
      ExpectSamePayload(gradient, {step, step}, &shard);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DevicePowerSgdTest, AnotherRankBeginsWithTheFirstQ) {
  CodecSpec spec = GetParam();
  spec.powersgd_rank = 3;
  const auto other = Make(spec);
  Shard shard(4200, stream_, {.columns = 70});
  for (uint32_t step = 0; step < 5; ++step) {
    const DeviceCodec& codec = step == 2 ? *other : *codec_;
    ExpectSamePayload(codec, Gauss(4200, step), {step, step}, &shard);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, DevicePowerSgdTest, testing::ValuesIn(PowerSgdSpecs()),
                         [](const auto& param) { return SpecName(param.param); });

TEST(DeviceCodecSpecTest, ACodecWithoutAGpuEncoderIsRefused) {
  const absl::Status status = CheckDeviceEncoder({.name = "host_only"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(status.message().find("host_only: no GPU encoder"), std::string::npos) << status;
  EXPECT_TRUE(CheckDeviceEncoder(RowOf(CodecId::kTopK)).ok());
  const auto made = DeviceCodec::Make({.id = CodecId::kDctTopK});
  EXPECT_EQ(made.status().message(),
            "dct_topk: no GPU encoder (expected a codec with one, such as fp8_e4m3)");
}

TEST(DeviceCodecSpecTest, AnInvalidSpecIsRefused) {
  const auto made = DeviceCodec::Make({.id = CodecId::kTopK, .density = 2});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << made.status();
}

}  // namespace
}  // namespace thinwire::client::gpu
