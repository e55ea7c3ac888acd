// Test support for comparing a CUDA kernel with its CPU version: input arrays of all kinds and
// sizes, and a comparison bit by bit.
#ifndef THINWIRE_KERNELS_CUDA_OPS_TWIN_CASES_H_
#define THINWIRE_KERNELS_CUDA_OPS_TWIN_CASES_H_

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
#include "kernels/cuda/runtime/cuda_fixture.h"
#include "kernels/cuda/runtime/device.h"

namespace thinwire::kernels::cuda {

// Expects that each pair of values has equal bits or is a pair of NaNs.
inline void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "value " << i << " of " << got.size() << ": expected " << want[i] << ", got " << got[i];
  }
}

enum class Kind { kRandom, kEqual, kDenormal, kSpecial };

// Returns COUNT values of the kind KIND: random magnitudes, one repeated value, only subnormal
// values, or a mixture with NaNs, infinities and zeros.
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

// Calls check(values, seed) for arrays of every kind whose sizes are close to the size of a warp or
// of a tile, then for 2^20 + 1 random values and, on devices with at least 8 GiB of memory, for
// 2^26 random values.
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

#endif  // THINWIRE_KERNELS_CUDA_OPS_TWIN_CASES_H_
