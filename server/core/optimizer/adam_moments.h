// AdamMoments: what adam and adamw share, the decay of the two moments and the correction for their
// start at zero.
//
// Immutable.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_MOMENTS_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_MOMENTS_H_

#include "kernels/update_adam.h"
#include "server/core/optimizer/optimizer.h"

namespace thinwire {

class AdamMoments {
 public:
  explicit AdamMoments(const OptimizerSpec& spec)
      : beta1_(spec.beta1), beta2_(spec.beta2), epsilon_(spec.epsilon) {}

  // The numbers of UPDATE's step, without any weight decay.
  kernels::AdamStep StepFor(const Update& update) const;

 private:
  const double beta1_;
  const double beta2_;
  const double epsilon_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_ADAM_MOMENTS_H_
