// Reductions of arrays: sums by sign, sums of squares, the range, and the largest magnitude. Codecs compute
// codebooks and scales from the results, and optimizers the norms of tensors.
//
// Sums are computed in double and in a fixed order, so they do not depend on the vector length or
// the number of threads. An array is divided into runs of kSumRun values; the last run may be
// shorter. Within a run, value i is added to partial sum i mod kSumParts, and then the partial sums
// are added in order. The sums of the runs are added in the same way: the sum of run r is added to
// partial sum r mod kSumParts. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_REDUCTIONS_H_
#define THINWIRE_KERNELS_REDUCTIONS_H_

#include <cstddef>
#include <span>

namespace thinwire::kernels {

inline constexpr size_t kSumRun = 4096;
inline constexpr size_t kSumParts = 16;

// The sums of positive and of negative values. A value whose sign bit is set, including -0.0,
// counts as negative.
struct SignSums {
  double positive = 0;
  double negative = 0;  // sum of the negative values, at most 0
  size_t negative_count = 0;
};
SignSums SumBySign(std::span<const float> values);
// Computes values += gradient and sums the results, in one pass. REQUIRES: gradient.size() ==
// values.size().
SignSums AddAndSumBySign(std::span<const float> gradient, std::span<float> values);

// Returns the sum of the squares of scale * value. The products scale * value are rounded to float.
double SumOfSquares(std::span<const float> values, float scale = 1);

// The smallest and the largest number among 0 and the values of an array. NaNs are ignored.
struct Range {
  float least = 0;
  float most = 0;
};
Range RangeWithZero(std::span<const float> values);
// Computes values += gradient and returns the range of the results, in one pass. REQUIRES:
// gradient.size() == values.size().
Range AddAndRangeWithZero(std::span<const float> gradient, std::span<float> values);

// Returns max |values|, or 0 for an empty array. A NaN counts as larger than infinity, so the
// result is a NaN if any value is.
float LargestMagnitude(std::span<const float> values);

// Returns max |a + b|. REQUIRES: a.size() == b.size().
float LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_REDUCTIONS_H_
