// An array times a number, and whether all of it is finite, in one pass: what a gradient goes
// through whose loss was scaled, or that is clipped. Each product is rounded on its own. Pure:
// thread-safe.
#ifndef THINWIRE_KERNELS_SCALE_H_
#define THINWIRE_KERNELS_SCALE_H_

#include <span>

namespace thinwire::kernels {

// out = factor * values; says whether every product is finite. REQUIRES: equal lengths; the arrays
// are the same or do not overlap.
bool ScaleFinite(float factor, std::span<const float> values, std::span<float> out);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_SCALE_H_
