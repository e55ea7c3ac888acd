// AdamConstants computes the kernel's settings for one update of Adam, AdamW or LAMB, with the bias
// corrections of algorithm 1 of Kingma and Ba 2015. The results have the same bits on every
// machine.
#ifndef THINWIRE_COMMON_MODEL_ADAM_STEP_H_
#define THINWIRE_COMMON_MODEL_ADAM_STEP_H_

#include <cmath>
#include <cstdint>

#include "common/base/repeatable_math.h"
#include "kernels/update/update_adam.h"

namespace thinwire {

struct AdamConstants {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;

  // Returns 1 - beta1^NUMBER, by which the learning rate is divided. It is computed in double,
  // because the subtraction cancels most digits in the first updates.
  double RateCorrection(uint64_t number) const { return 1 - IntegerPower(beta1, number); }

  // Returns the step of update NUMBER, from 1, without weight decay.
  kernels::AdamStep Step(double learning_rate, uint64_t number) const {
    return {.beta1 = static_cast<float>(beta1),
            .one_minus_beta1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .one_minus_beta2 = static_cast<float>(1 - beta2),
            .step_size = FiniteFloat(learning_rate / RateCorrection(number)),
            .root_scale = static_cast<float>(1 / std::sqrt(1 - IntegerPower(beta2, number))),
            .epsilon = static_cast<float>(epsilon)};
  }
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MODEL_ADAM_STEP_H_
