#include "common/base/repeatable_math.h"

#include <cmath>
#include <numbers>

namespace thinwire {
namespace {

// Returns log2(x) by the series of artanh, for x scaled to [1/sqrt(2), sqrt(2)). REQUIRES: x > 0.
double LogTwo(double x) {
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);
  if (fraction < std::numbers::sqrt2 / 2) {
    fraction *= 2;
    --exponent;
  }
  const double z = (fraction - 1) / (fraction + 1);
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * z * z + 1.0 / k;
  return exponent + 2 * z * sum / std::numbers::ln2;
}

// Returns 2^y by the series of exp on [-1/2, 1/2] and a scaling. REQUIRES: y <= 0.
double ExpTwo(double y) {
  if (y < -1100) return 0;
  const double whole = std::floor(y + 0.5);
  const double x = (y - whole) * std::numbers::ln2;
  double sum = 1;
  for (int k = 18; k >= 1; --k) sum = 1 + sum * x / k;
  return std::ldexp(sum, static_cast<int>(whole));
}

// Returns sin(x) by its series. REQUIRES: 0 <= x <= pi / 4.
double Sine(double x) {
  double sum = 1;
  for (int k = 18; k >= 2; k -= 2) sum = 1 - sum * x * x / (k * (k + 1));
  return x * sum;
}

}  // namespace

double IntegerPower(double base, uint64_t exponent) {
  double power = 1;
  for (double square = base; exponent != 0; exponent /= 2, square *= square) {
    if (exponent % 2 == 1) power *= square;
  }
  return power;
}

double Power(double base, double exponent) {
  constexpr double kLargestInteger = 1 << 20;
  if (exponent <= kLargestInteger && exponent == std::floor(exponent)) {
    return IntegerPower(base, static_cast<uint64_t>(exponent));
  }
  return base == 0 ? 0 : ExpTwo(exponent * LogTwo(base));
}

double HalfCosine(double p) {
  // (1 + cos(pi p)) / 2 = 1 - sin^2(pi p / 2) = sin^2(pi (1 - p) / 2). The function uses the second
  // form for p < 0.5 and the third form otherwise, so that the sine's argument is at most pi/4.
  if (p < 0.5) {
    const double sine = Sine(std::numbers::pi / 2 * p);
    return 1 - sine * sine;
  }
  const double sine = Sine(std::numbers::pi / 2 * (1 - p));
  return sine * sine;
}

}  // namespace thinwire
