// The largest magnitude of an array, which a scale is chosen from. Pure functions: thread-safe.
//
// A NaN counts as larger than infinity, so one in the array comes out as it is.
#ifndef THINWIRE_KERNELS_MAGNITUDE_H_
#define THINWIRE_KERNELS_MAGNITUDE_H_

#include <span>

namespace thinwire::kernels {

// max |values|; 0 for none.
float LargestMagnitude(std::span<const float> values);

// max |a + b|. REQUIRES: a.size() == b.size().
float LargestMagnitudeOfSum(std::span<const float> a, std::span<const float> b);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_MAGNITUDE_H_
