// Test support: the tests that every optimizer kernel must pass.
#ifndef THINWIRE_KERNELS_UPDATE_UPDATE_CASES_H_
#define THINWIRE_KERNELS_UPDATE_UPDATE_CASES_H_

#include <functional>
#include <span>
#include <vector>

namespace thinwire::kernels {

// An optimizer kernel with fixed hyperparameters, and the formula that it implements, for one value
// in double.
struct UpdateCase {
  int slot_count = 0;
  std::function<bool(std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots)>
      kernel;
  std::function<void(double sum, double& master, std::span<double> slots)> exact;
  // False for a kernel whose results may be infinite. Its return value is not tested.
  bool saturates = true;
};

// Runs the kernel on arrays of 0 to 67 values at offsets 0 to 3. Expects that every result equals
// the formula within rounding, and that no value outside the arrays changes.
void ExpectMatchesTheExactLoop(const UpdateCase& update);

// Runs the kernel with every instruction set (Highway target) of this processor, with the lengths
// and offsets of ExpectMatchesTheExactLoop(). Expects the bits that the first instruction set
// computes with one value per call. If the kernel saturates, also runs it on values up to the
// largest float, and expects finite results, and the return value true exactly if a result is the
// largest float.
void ExpectTheSameBitsEverywhere(const UpdateCase& update);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_UPDATE_CASES_H_
