// Whether arrays of numbers are finite. Pure functions: thread-safe.
#ifndef THINWIRE_KERNELS_FINITE_H_
#define THINWIRE_KERNELS_FINITE_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

bool AllFinite(std::span<const float> values);

// The COUNT codes of a number format that begin at CODES, any address.
template <typename Format>
bool AllFiniteCodes(const std::byte* codes, size_t count);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_FINITE_H_
