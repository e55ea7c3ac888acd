#include "client/gpu/device_decode.h"

#include <memory>
#include <vector>

#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::ExpectSameBits;

class DeviceDecodeTest : public kernels::cuda::CudaTest,
                         public testing::WithParamInterface<CodecSpec> {
 protected:
  // In two pieces, so that a value straddles them.
  static CheckedPayload InPieces(std::vector<std::byte> payload, size_t count) {
    const auto cut = static_cast<ptrdiff_t>(payload.size() / 2);
    ByteChain chain(std::vector<std::byte>(payload.begin(), payload.begin() + cut));
    chain.Append(ByteChain(std::vector<std::byte>(payload.begin() + cut, payload.end())));
    return CheckPayload(chain, count).value();
  }

  void ExpectTheHosts(const CheckedPayload& payload, const std::vector<float>& start, float scale) {
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
    workspace.Read();  // finds out who wrote behind it
  }
};

TEST_P(DeviceDecodeTest, TheDeviceDecodesWhatTheHostDoes) {
  const std::unique_ptr<const Codec> codec = *MakeCodec(GetParam());
  for (const size_t count : {0, 1, 31, 32, 33, 513, 4095, 4097, 20'003}) {
    const CheckedPayload payload = InPieces(Encoded(*codec, StudentT3(count, 3)), count);
    for (const float scale : {1.0f, -0.3f}) {
      SCOPED_TRACE(testing::Message() << count << " values times " << scale);
      ExpectTheHosts(payload, Gauss(count, 5), scale);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceDecodeTest, WhatIsStagedIsAboutAsShortAsThePayload) {
  constexpr size_t kCount = 100'003;
  const std::unique_ptr<const Codec> codec = *MakeCodec(GetParam());
  const CheckedPayload payload =
      CheckPayload(ByteChain(Encoded(*codec, Laplace(kCount, 3))), kCount).value();
  const size_t staged = DeviceDecoder(payload).staged_bytes();
  if (PayloadIsSparse(payload)) {
    size_t sent_count = 0;
    ForEachPayloadEntry(payload, [&](auto indices, auto) { sent_count += indices.size(); });
    EXPECT_EQ(staged, 8 * sent_count);
  } else {
    // A group of eight signs has one number in its payload, and a table of two.
    const size_t table_bytes = GetParam().onebit_group == 8 ? kCount : 256 * sizeof(float);
    EXPECT_LE(staged, payload.bytes().size() + table_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceDecodeTest, testing::ValuesIn(AllCodecSpecs()),
                         [](const auto& param) { return SpecName(param.param); });

}  // namespace
}  // namespace thinwire::client::gpu
