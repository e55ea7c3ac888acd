// PowerTable computes many integer powers of one base. Each power is the product of one entry from
// each of two short tables.
//
//   base^n = low[n % 64] * high[n / 64]      for n < 4096; larger n: repeated squaring
//
// Results are bit-identical on every machine. Immutable.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_POWER_TABLE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_POWER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/repeatable_math.h"

namespace thinwire {

class PowerTable {
 public:
  explicit PowerTable(double base) : base_(base) {
    low_[0] = high_[0] = 1;
    for (size_t i = 1; i < kSize; ++i) low_[i] = low_[i - 1] * base;
    const double stride = low_[kSize - 1] * base;
    for (size_t i = 1; i < kSize; ++i) high_[i] = high_[i - 1] * stride;
  }

  // Returns base^n. The result is exactly 1 for n = 0 and any base.
  double Of(uint32_t n) const {
    if (n >= kSize * kSize) return IntegerPower(base_, n);
    return low_[n % kSize] * high_[n / kSize];
  }

 private:
  static constexpr size_t kSize = 64;

  const double base_;
  std::array<double, kSize> low_;
  std::array<double, kSize> high_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_POWER_TABLE_H_
