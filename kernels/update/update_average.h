// One step of an exponential moving average, for each value x and its average a:
//
//   a = a + part * (x - a)
//
// A difference x - a beyond the largest finite float becomes that float. Every operation is rounded
// to float separately, so results do not depend on the machine or on a value's position. Uses
// Highway vector instructions. Pure function; thread-safe.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_AVERAGE_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_AVERAGE_H_

#include <span>

namespace thinwire::kernels {

// The averages stay finite. REQUIRES: the arrays have equal lengths and do not overlap; all values
// are finite; 0 <= part <= 0.9.
void UpdateAverage(float part, std::span<const float> values, std::span<float> averages);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_AVERAGE_H_
