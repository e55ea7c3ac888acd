// What a table of few entries is fitted to: the sums of the values of either sign, and their range.
//
// A sum of up to 4,096 values, a run, is that of 16 partial ones, value i being added to number
// i mod 16, in double; and so are the runs added, run r to number r mod 16. That is the same on
// every machine, however wide its vectors and however many its threads are. Vectors: Highway. Pure
// functions: thread-safe.
#ifndef THINWIRE_KERNELS_SUMS_H_
#define THINWIRE_KERNELS_SUMS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kSumRun = 4096;
inline constexpr size_t kSumParts = 16;

// A value whose sign bit is set counts as negative, also a zero.
struct SignSums {
  double positive = 0;
  double negative = 0;  // at most 0
  size_t negative_count = 0;
};
SignSums SumBySign(std::span<const float> values);
// The same after values += gradient, in one pass. REQUIRES: gradient.size() == values.size().
SignSums AddAndSumBySign(std::span<const float> gradient, std::span<float> values);

// The least and the largest of VALUES and 0. A NaN counts for nothing.
struct Range {
  float least = 0;
  float most = 0;
};
Range RangeWithZero(std::span<const float> values);
// The same after values += gradient, in one pass. REQUIRES: gradient.size() == values.size().
Range AddAndRangeWithZero(std::span<const float> gradient, std::span<float> values);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SUMS_H_
