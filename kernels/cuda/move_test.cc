#include "kernels/cuda/move.h"

#include "kernels/cuda/twin_test.h"
#include "kernels/float_order.h"

namespace thinwire::kernels::cuda {
namespace {

using MoveTest = TwinTest;

TEST_F(MoveTest, OneNumberIsTheNextFloat) {
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, -1e-45f, 3.4e38f};
  for (const float value : values) {
    const float next = FloatOfNumber(NumberOfFloat(value) + 1);
    EXPECT_EQ(next, std::bit_cast<uint32_t>(value) == 0x80000000
                        ? 0.0f
                        : std::nextafter(value, std::numeric_limits<float>::infinity()));
  }
}

TEST_F(MoveTest, AllOrSomeValuesMove) {
  ForEachCase([&](const std::vector<float>& values, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<uint32_t> moves(values.size()), indices, some_moves;
    std::vector<float> all = values, some = values;
    for (size_t i = 0; i < values.size(); ++i) {
      moves[i] = static_cast<uint32_t>(random()) >> (i % 32);
      all[i] = FloatOfNumber(NumberOfFloat(values[i]) + moves[i]);
      if (i % 3 != 0) continue;
      indices.push_back(static_cast<uint32_t>(i));
      some_moves.push_back(moves[i]);
      some[i] = all[i];
    }
    DeviceArray<uint32_t> device_moves(moves, stream_), device_some(some_moves, stream_);
    DeviceArray<uint32_t> device_indices(indices, stream_);
    DeviceArray<float> moved(values, stream_, seed % 2), moved_at(values, stream_);
    Expect(Move(device_moves.span(), moved.span(), stream_));
    ExpectSameBits(moved.Read(), all);
    Expect(MoveAt(device_indices.span(), device_some.span(), moved_at.span(), stream_));
    ExpectSameBits(moved_at.Read(), some);
  });
}

}  // namespace
}  // namespace thinwire::kernels::cuda
