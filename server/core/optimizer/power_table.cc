#include "server/core/optimizer/power_table.h"

namespace thinwire {

PowerTable::PowerTable(double base) : base_(base) {
  low_[0] = high_[0] = 1;
  for (size_t i = 1; i < kSize; ++i) low_[i] = low_[i - 1] * base;
  const double stride = low_[kSize - 1] * base;
  for (size_t i = 1; i < kSize; ++i) high_[i] = high_[i - 1] * stride;
}

}  // namespace thinwire
