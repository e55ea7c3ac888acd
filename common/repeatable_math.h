// Powers and cosines that come out bit for bit alike on every machine. The C library's choose their
// code by the processor, and its versions differ in the last bits; a replay must not. Only + - * /
// and exact scalings are used. Errors stay below 1e-13 of the result. Thread-safe.
#ifndef THINWIRE_COMMON_REPEATABLE_MATH_H_
#define THINWIRE_COMMON_REPEATABLE_MATH_H_

#include <cstdint>

namespace thinwire {

// base^exponent; 0^0 is 1.
double IntegerPower(double base, uint64_t exponent);

// base^exponent. REQUIRES: 0 <= base <= 1, exponent >= 0, both finite.
double Power(double base, double exponent);

// (1 + cos(pi p)) / 2: exactly 1 at 0 and exactly 0 at 1. REQUIRES: 0 <= p <= 1.
double HalfCosine(double p);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_REPEATABLE_MATH_H_
