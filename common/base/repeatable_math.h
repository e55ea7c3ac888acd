// Powers, cosines and a rounding with the same bits on every machine, so that a replay gives the
// bits of the original run. The functions of the C library differ in the last bits between
// processors and library versions. The functions below use only the four basic operations and exact
// scaling by powers of two. The relative error is below 1e-13. Thread-safe.
#ifndef THINWIRE_COMMON_BASE_REPEATABLE_MATH_H_
#define THINWIRE_COMMON_BASE_REPEATABLE_MATH_H_

#include <algorithm>
#include <cstdint>
#include <limits>

namespace thinwire {

// Returns base^exponent. 0^0 is 1.
double IntegerPower(double base, uint64_t exponent);

// Returns base^exponent. REQUIRES: 0 <= base <= 1, exponent >= 0, both finite.
double Power(double base, double exponent);

// Returns (1 + cos(pi p)) / 2, exactly 1 at 0 and exactly 0 at 1. REQUIRES: 0 <= p <= 1.
double HalfCosine(double p);

// Returns VALUE, rounded to float and limited to the magnitude of the largest finite float.
inline float FiniteFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_REPEATABLE_MATH_H_
