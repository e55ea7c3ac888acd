// What the tests of the CUDA twins share: a stream, arrays on the device, and the cases that a twin
// must have the same bits for as its CPU kernel. Only tests use it. Not thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_TWIN_TEST_H_
#define THINWIRE_KERNELS_CUDA_TWIN_TEST_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/buffer.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_array.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// Skips where there is no GPU; on the emulation there always is one.
class TwinTest : public testing::Test {
 protected:
  void SetUp() override {
    if (DeviceCount() == 0) GTEST_SKIP() << "this machine has no GPU that CUDA can use";
    Expect(stream_.Open());
  }

  static void Expect(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  Stream stream_;
};

// Equal bits, or both not a number.
inline void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "value " << i << " of " << got.size() << ": " << got[i] << ", want " << want[i];
  }
}

enum class Kind { kRandom, kEqual, kDenormal, kSpecial };

// Values of every size there is, all the same, all denormal, or with NaNs, infinities and zeros.
inline std::vector<float> ValuesOf(Kind kind, size_t count, uint32_t seed) {
  using Limits = std::numeric_limits<float>;
  const float special[] = {0.0f,
                           -0.0f,
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::max(),
                           Limits::min(),
                           65520.0f,
                           464.0f};
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const auto bits = static_cast<uint32_t>(random());
    if (kind == Kind::kEqual) {
      value = -1.25f;
    } else if (kind == Kind::kDenormal) {
      value = std::bit_cast<float>(bits & 0x807FFFFF);
    } else if (kind == Kind::kSpecial && bits % 4 == 0) {
      value = special[bits / 4 % std::size(special)];
    } else {
      value =
          std::ldexp(static_cast<float>(bits % 20001) - 10000, static_cast<int>(bits >> 27) - 24);
    }
  }
  return values;
}

// Calls check(values, seed) for the sizes at which something begins or ends: of every kind up to a
// tile and a value, random ones of more, and of very many where the device has the memory.
inline void ForEachCase(
    const std::function<void(const std::vector<float>& values, uint32_t seed)>& check) {
  uint32_t seed = 1;
  const auto check_next = [&](Kind kind, size_t count) {
    SCOPED_TRACE(testing::Message() << count << " values of kind " << static_cast<int>(kind));
    ++seed;
    if (!testing::Test::HasFatalFailure()) check(ValuesOf(kind, count, seed), seed);
  };
  for (const Kind kind : {Kind::kRandom, Kind::kEqual, Kind::kDenormal, Kind::kSpecial}) {
    for (const size_t count : {0, 1, 31, 32, 33, 4095, 4096, 4097}) check_next(kind, count);
  }
  check_next(Kind::kRandom, (1 << 20) + 1);
  if (DeviceMemoryBytes() >= size_t{8} << 30) check_next(Kind::kRandom, 1 << 26);
}

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_TWIN_TEST_H_
