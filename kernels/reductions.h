// Reductions of arrays: sums by sign, the range, and the largest magnitude. Codecs fit codebooks
// and scales to them.
//
// Sums are in double and have a fixed order, so they do not depend on the vector length or the
// number of threads: within a run of up to kSumRun values, value i is added to partial sum i mod
// kSumParts, and the partial sums are added in order. The sums of run r are added to partial sum r
// mod kSumParts in the same way. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_REDUCTIONS_H_
#define THINWIRE_KERNELS_REDUCTIONS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kSumRun = 4096;
inline constexpr size_t kSumParts = 16;

// The sums of positive and of negative values. A value with a set sign bit, including -0.0, is
// negative.
struct SignSums {
  double positive = 0;
  double negative = 0;  // at most 0
  size_t negative_count = 0;
};
SignSums SumBySign(std::span<const float> values);
// Computes values += gradient and sums the results, in one pass. REQUIRES: gradient.size() ==
// values.size().
SignSums AddAndSumBySign(std::span<const float> gradient, std::span<float> values);

// The least and the largest of some values and 0. NaNs are ignored.
struct Range {
  float least = 0;
  float most = 0;
};
Range RangeWithZero(std::span<const float> values);
// Computes values += gradient and returns the range of the results, in one pass. REQUIRES:
// gradient.size() == values.size().
Range AddAndRangeWithZero(std::span<const float> gradient, std::span<float> values);

// Returns max |values|, or 0 for an empty array. A NaN counts as larger than infinity and is
// returned as it is.
float LargestMagnitude(std::span<const float> values);

// Returns max |a + b|. REQUIRES: a.size() == b.size().
float LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_REDUCTIONS_H_
