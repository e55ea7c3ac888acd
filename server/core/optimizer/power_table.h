// PowerTable: many powers of one number, each for a product from two short tables.
//
//   base^n = low[n % 64] * high[n / 64]      n below 4096; beyond, by repeated squares
//
// The same bits on every machine. Immutable.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_POWER_TABLE_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_POWER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/repeatable_math.h"

namespace thinwire {

class PowerTable {
 public:
  explicit PowerTable(double base);

  // base^n; exactly 1 for n = 0, whatever the base.
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
