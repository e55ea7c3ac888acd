// Test support: the tests that every optimizer kernel must pass.
#ifndef THINWIRE_KERNELS_UPDATE_CASES_H_
#define THINWIRE_KERNELS_UPDATE_CASES_H_

#include <functional>
#include <span>
#include <vector>

namespace thinwire::kernels {

// A kernel with its hyperparameters bound, and its formula for one value in double.
struct UpdateCase {
  int slot_count = 0;
  std::function<void(std::span<const float> sum, std::span<float> masters,
                     std::span<const std::span<float>> slots)>
      kernel;
  std::function<void(double sum, double& master, std::span<double> slots)> exact;
};

// For lengths 0 to 67 at offsets 0 to 3, expects that every value equals the formula within
// rounding and nothing outside the spans changes.
void ExpectMatchesTheExactLoop(const UpdateCase& update);

// For all Highway targets of this processor and the same lengths and offsets, expects the bits that
// the first target computes from the values one by one.
void ExpectTheSameBitsEverywhere(const UpdateCase& update);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_UPDATE_CASES_H_
