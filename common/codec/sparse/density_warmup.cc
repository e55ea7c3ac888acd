#include "common/codec/sparse/density_warmup.h"

#include <algorithm>

#include "common/base/repeatable_math.h"

namespace thinwire {

double DensityWarmup::At(double progress, double last) const {
  if (progress >= part) return last;
  const double done = progress / part;
  const auto [least, most] = std::minmax(first, last);
  // The density is clamped to the range between FIRST and LAST, because rounding errors could move
  // it out of the range.
  return std::clamp(Power(first, 1 - done) * Power(last, done), least, most);
}

}  // namespace thinwire
