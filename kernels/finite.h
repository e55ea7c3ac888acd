// Checks whether arrays are finite or bounded. Uses Highway vector instructions. Pure functions;
// thread-safe.
#ifndef THINWIRE_KERNELS_FINITE_H_
#define THINWIRE_KERNELS_FINITE_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

// Returns whether all values are finite.
bool AllFinite(std::span<const float> values);

// Returns whether no code has a larger magnitude than LARGEST, a positive code. The COUNT codes
// begin at CODES, which need not be aligned. Without their sign bits, codes have the order of their
// magnitudes, and codes of infinities and NaNs are the largest. With LARGEST = Format::kMaxFinite
// the function therefore tests whether all codes are finite.
template <typename Format>
bool AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_FINITE_H_
