// What every update kernel is tested for, whatever it computes. Only tests use it.
#ifndef THINWIRE_KERNELS_UPDATE_CASES_H_
#define THINWIRE_KERNELS_UPDATE_CASES_H_

#include <functional>
#include <span>
#include <vector>

namespace thinwire::kernels {

// One kernel with its numbers bound, and the same formula for one value in double.
struct UpdateCase {
  int slot_count = 0;
  std::function<void(std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots)>
      kernel;
  std::function<void(double sum, double& master, std::span<double> slots)> exact;
};

// Lengths 0 to 67 at offsets 0 to 3: every value is the exact one within rounding, and nothing
// beyond the spans is touched.
void ExpectMatchesTheExactLoop(const UpdateCase& update);

// Every target this processor has, the same lengths and offsets: the bits of every value are those
// that the first target gives when it is handed the values one by one.
void ExpectTheSameBitsEverywhere(const UpdateCase& update);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_CASES_H_
