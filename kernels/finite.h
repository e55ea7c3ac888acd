// Checks whether arrays are finite or bounded. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_FINITE_H_
#define THINWIRE_KERNELS_FINITE_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

// Returns whether no value is infinite or NaN.
bool AllFinite(std::span<const float> values);

// Returns whether no magnitude among COUNT codes at CODES (any address) exceeds that of the
// positive code LARGEST. Codes order like their magnitudes, and codes that are not finite are the
// largest: with Format::kMaxFinite this tests whether all codes are finite.
template <typename Format>
bool AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_FINITE_H_
