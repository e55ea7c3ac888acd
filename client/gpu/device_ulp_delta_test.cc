#include "client/gpu/device_ulp_delta.h"

#include <vector>

#include "common/codec/delta/ulp_delta.h"
#include "gtest/gtest.h"
#include "kernels/cuda/ops/twin_cases.h"

namespace thinwire::client::gpu {
namespace {

using kernels::cuda::DeviceArray;
using kernels::cuda::ExpectSameBits;
using kernels::cuda::Kind;
using kernels::cuda::ValuesOf;

class DeviceUlpDeltaTest : public kernels::cuda::CudaTest {
 protected:
  // What moves each EVERY-th of COUNT values to quite another one, and the bytes of it.
  void ExpectMoved(size_t count, size_t every) {
    const std::vector<float> from = ValuesOf(Kind::kSpecial, count, 1);
    std::vector<float> to = from;
    std::vector<uint32_t> indices;
    const std::vector<float> others = ValuesOf(Kind::kRandom, count, 2);
    for (size_t i = 0; i < count; i += every) {
      to[i] = i % 2 == 0 ? std::nextafter(from[i], 7.0f) : others[i];
      const bool moves = std::bit_cast<uint32_t>(to[i]) != std::bit_cast<uint32_t>(from[i]);
      if (moves) indices.push_back(static_cast<uint32_t>(i));
    }
    const UlpDelta delta = UlpDelta::Check(EncodeUlpDelta(from, to, indices), count).value();
    const DeviceUlpDelta moves(delta);
    EXPECT_EQ(moves.staged_bytes(), std::min(4 * count, 8 * indices.size()));
    std::vector<std::byte> staged(moves.staged_bytes());
    moves.Stage(staged);
    DeviceArray<std::byte> on_device(staged, stream_);
    DeviceArray<float> values(from, stream_, count % 4);
    Expect(moves.Apply(on_device.span(), values.span(), stream_));
    std::vector<float> want = from;
    delta.Apply(want);
    ExpectSameBits(want, to);
    ExpectSameBits(values.Read(), to);
  }
};

TEST_F(DeviceUlpDeltaTest, FewAndManyValuesMoveToWhatTheHostSays) {
  for (const size_t count : {1, 33, 4095, 4097, 20'000}) {
    for (const size_t every : {1, 2, 3, 100}) {
      SCOPED_TRACE(testing::Message() << "each of " << every << " of " << count);
      ExpectMoved(count, every);
    }
  }
}

TEST_F(DeviceUlpDeltaTest, WhereNothingMovesNothingIsStaged) {
  const std::vector<float> values = {1.0f, 2.0f};
  const UlpDelta delta = UlpDelta::Check(EncodeUlpDelta(values, values, {}), values.size()).value();
  const DeviceUlpDelta moves(delta);
  EXPECT_EQ(moves.staged_bytes(), 0u);
  DeviceArray<float> on_device(values, stream_);
  Expect(moves.Apply({}, on_device.span(), stream_));
  EXPECT_EQ(on_device.Read(), values);
}

}  // namespace
}  // namespace thinwire::client::gpu
