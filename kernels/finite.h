// Whether arrays of numbers are finite, or within a smaller bound. Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_FINITE_H_
#define THINWIRE_KERNELS_FINITE_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

bool AllFinite(std::span<const float> values);

// Whether none of the COUNT codes that begin at CODES, any address, has a magnitude above that of
// the positive code LARGEST. Codes order as their magnitudes do, and those that are not finite are
// above all others: with Format::kMaxFinite it is whether all are finite.
template <typename Format>
bool AllCodesWithin(const std::byte* codes, size_t count, typename Format::Code largest);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_FINITE_H_
