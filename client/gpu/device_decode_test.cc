#include "client/gpu/device_decode.h"

#include <memory>
#include <vector>

#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/memory/byte_chain.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/cuda/runtime/cuda_fixture.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::ExpectSameBits;
using kernels::cuda::Kind;
using kernels::cuda::ValuesOf;

class DeviceDecodeTest : public kernels::cuda::CudaTest,
                         public testing::WithParamInterface<CodecSpec> {
 protected:
  // Returns PAYLOAD as a chain of two pieces, whose boundary may be within a value.
  static CheckedPayload InPieces(std::vector<std::byte> payload, size_t count) {
    const auto cut = static_cast<ptrdiff_t>(payload.size() / 2);
    ByteChain chain(std::vector<std::byte>(payload.begin(), payload.begin() + cut));
    chain.Append(ByteChain(std::vector<std::byte>(payload.begin() + cut, payload.end())));
    return CheckPayload(chain, count).value();
  }

  void ExpectEqualsHost(const CheckedPayload& payload, const std::vector<float>& start,
                        float scale) {
    std::vector<float> decoded = start, sum = start;
    DecodePayloadScaled(payload, scale, decoded);
    DecodePayloadAdd(payload, scale, sum);

    const DeviceDecoder decoder(payload, scale);
    std::vector<std::byte> staged(decoder.staged_bytes());
    decoder.Stage(staged);
    DeviceArray<std::byte> on_device(staged, stream_);
    DeviceArray<std::byte> workspace(decoder.workspace_bytes(), stream_);
    DeviceArray<float> device_decoded(start, stream_), device_sum(start, stream_);
    Expect(decoder.Decode(on_device.span(), workspace.span(), device_decoded.span(), stream_));
    Expect(decoder.DecodeAdd(on_device.span(), workspace.span(), device_sum.span(), stream_));
    ExpectSameBits(device_decoded.Read(), decoded);
    ExpectSameBits(device_sum.Read(), sum);
    workspace.Read();  // Read checks that no kernel wrote past the end of the array
  }
};

TEST_P(DeviceDecodeTest, DecodesLikeTheHost) {
  const std::unique_ptr<const Codec> codec = *MakeCodec(GetParam());
  for (const size_t count : {0, 1, 31, 32, 33, 513, 4095, 4097, 20'003}) {
    const CheckedPayload payload = InPieces(Encoded(*codec, StudentT3(count, 3)), count);
    for (const float scale : {1.0f, -0.3f}) {
      SCOPED_TRACE(testing::Message() << count << " values times " << scale);
      ExpectEqualsHost(payload, Gauss(count, 5), scale);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceDecodeTest, StagedDataIsAboutAsShortAsThePayload) {
  constexpr size_t kCount = 100'003;
  const std::unique_ptr<const Codec> codec = *MakeCodec(GetParam());
  const CheckedPayload payload =
      CheckPayload(ByteChain(Encoded(*codec, Laplace(kCount, 3))), kCount).value();
  const size_t staged = DeviceDecoder(payload).staged_bytes();
  if (PayloadIsSparse(payload)) {
    size_t sent_count = 0;
    ForEachPayloadEntry(payload, [&](auto indices, auto) { sent_count += indices.size(); });
    EXPECT_EQ(staged, 8 * sent_count);
  } else if (PayloadCodec(payload) == CodecId::kPowerSgd ||
             PayloadCodec(payload) == CodecId::kDctTopK) {
    EXPECT_EQ(staged, 4 * kCount);
  } else {
    // A one-bit codec with groups of eight values stages a table of 8 bytes per group, which is one
    // byte per value. All other tables have at most 256 floats.
    const size_t table_bytes = GetParam().onebit_group == 8 ? kCount : 256 * sizeof(float);
    EXPECT_LE(staged, payload.bytes().size() + table_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceDecodeTest, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& param) { return SpecName(param.param); });

class DeviceUlpDeltaTest : public kernels::cuda::CudaTest {
 protected:
  // Applies a ULP delta that changes every EVERY-th of COUNT values on the GPU. Expects the right
  // size of the staged data and the right result.
  void ExpectApplies(size_t count, size_t every) {
    const std::vector<float> from = ValuesOf(Kind::kSpecial, count, 1);
    std::vector<float> to = from;
    std::vector<uint32_t> indices;
    const std::vector<float> others = ValuesOf(Kind::kRandom, count, 2);
    for (size_t i = 0; i < count; i += every) {
      to[i] = i % 2 == 0 ? std::nextafter(from[i], 7.0f) : others[i];
      const bool differs = std::bit_cast<uint32_t>(to[i]) != std::bit_cast<uint32_t>(from[i]);
      if (differs) indices.push_back(static_cast<uint32_t>(i));
    }
    const UlpDelta delta = UlpDelta::Check(EncodeUlpDelta(from, to, indices), count).value();
    const DeviceUlpDelta on_gpu(delta);
    EXPECT_EQ(on_gpu.staged_bytes(), std::min(4 * count, 8 * indices.size()));
    std::vector<std::byte> staged(on_gpu.staged_bytes());
    on_gpu.Stage(staged);
    DeviceArray<std::byte> on_device(staged, stream_);
    DeviceArray<float> values(from, stream_, count % 4);
    Expect(on_gpu.Apply(on_device.span(), values.span(), stream_));
    std::vector<float> want = from;
    delta.Apply(want);
    ExpectSameBits(want, to);
    ExpectSameBits(values.Read(), to);
  }
};

TEST_F(DeviceUlpDeltaTest, ChangesFewOrManyValuesLikeTheHost) {
  for (const size_t count : {1, 33, 4095, 4097, 20'000}) {
    for (const size_t every : {1, 2, 3, 100}) {
      SCOPED_TRACE(testing::Message() << "every " << every << "th of " << count << " values");
      ExpectApplies(count, every);
    }
  }
}

TEST_F(DeviceUlpDeltaTest, AnEmptyDeltaStagesNothing) {
  const std::vector<float> values = {1.0f, 2.0f};
  const UlpDelta delta = UlpDelta::Check(EncodeUlpDelta(values, values, {}), values.size()).value();
  const DeviceUlpDelta on_gpu(delta);
  EXPECT_EQ(on_gpu.staged_bytes(), 0u);
  DeviceArray<float> on_device(values, stream_);
  Expect(on_gpu.Apply({}, on_device.span(), stream_));
  EXPECT_EQ(on_device.Read(), values);
}

}  // namespace
}  // namespace thinwire::client::gpu
