// Test support: OnEveryTarget() runs a check with each instruction set (Highway target) that the
// processor supports. Not thread-safe.
#ifndef THINWIRE_KERNELS_ON_EVERY_TARGET_H_
#define THINWIRE_KERNELS_ON_EVERY_TARGET_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace thinwire::kernels {

template <typename Check>
void OnEveryTarget(const Check& check) {
  for (int64_t targets = hwy::SupportedTargets() & HWY_TARGETS; targets != 0;
       targets &= targets - 1) {
    const int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_ON_EVERY_TARGET_H_
