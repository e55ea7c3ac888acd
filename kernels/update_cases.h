// Test support: the tests that every optimizer kernel must pass.
#ifndef THINWIRE_KERNELS_UPDATE_CASES_H_
#define THINWIRE_KERNELS_UPDATE_CASES_H_

#include <functional>
#include <span>
#include <vector>

namespace thinwire::kernels {

// An optimizer kernel with fixed hyperparameters, and the formula that it implements, for one value
// in double.
struct UpdateCase {
  int slot_count = 0;
  std::function<void(std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots)>
      kernel;
  std::function<void(double sum, double& master, std::span<double> slots)> exact;
};

// Runs the kernel on arrays of 0 to 67 values at offsets 0 to 3. Expects that every result equals
// the formula within rounding, and that no value outside the arrays changes.
void ExpectMatchesTheExactLoop(const UpdateCase& update);

// Runs the kernel on every Highway target of this processor, with the lengths and offsets of
// ExpectMatchesTheExactLoop(). Expects the bits that the first target computes one value at a time.
void ExpectTheSameBitsEverywhere(const UpdateCase& update);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_CASES_H_
