// LocalSteps: several optimizer steps of one worker between two pushes.
//
//   Begin       start = x                       x: the worker's parameters, as the servers sent them
//   Apply       x = optimizer(x, gradient)      once for each local step
//   Finish      gradient = start - x, x = start
//
// The servers' optimizer receives the difference as the worker's gradient. With optimizer sgd and
// learning rate 1, the new parameters are the mean of the workers' parameters (McMahan et al.
// 2017). With nesterov at the servers and adamw at the workers, it is DiLoCo (Douillard et al.
// 2023, algorithm 1); with other optimizers, FedOpt (Reddi et al. 2021, algorithm 1).
//
// Finish restores the parameters, because the servers may send the next ones as a change of them.
// The state of the local optimizer is kept from one Begin to the next.
#ifndef THINWIRE_CLIENT_ENCODE_LOCAL_STEPS_H_
#define THINWIRE_CLIENT_ENCODE_LOCAL_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/model/partition.h"
#include "common/spec/local_steps_spec.h"

namespace thinwire::client {

// All arrays are in the host's memory. Not thread-safe.
class LocalSteps {
 public:
  // One span of values per tensor.
  using Tensors = std::span<const std::span<float>>;
  // The state of the local optimizer between two Begins.
  struct State {
    uint64_t update_count = 0;              // applied local steps
    std::vector<std::vector<float>> slots;  // each has all tensors, one after the other

    bool operator==(const State&) const = default;
  };

  // TENSORS are the tensors of the model.
  LocalSteps(const LocalStepsSpec& spec, std::span<const TensorShape> tensors);

  // Returns the largest number of local steps between Begin() and Finish().
  uint32_t count() const { return spec_.count; }

  // Starts local steps at PARAMETERS.
  void Begin(Tensors parameters);
  // Divides GRADIENT by SCALE, the loss scale, and applies one local step to PARAMETERS. The
  // division is exact if SCALE is a power of two. Returns false and leaves PARAMETERS unchanged if
  // a value of the gradient is not finite. The values of GRADIENT are undefined afterwards.
  bool Apply(Tensors parameters, Tensors gradient, float scale = 1);
  // Sets GRADIENT to the parameters of Begin() minus PARAMETERS, and PARAMETERS to those of
  // Begin().
  void Finish(Tensors parameters, Tensors gradient);

  const State& state() const { return state_; }
  // Sets the state to STATE, that of another object with the same arguments. REQUIRES: not called
  // between Begin() and Finish().
  void Restore(State state) { state_ = std::move(state); }

 private:
  void Update(std::span<const float> gradient, std::span<float> parameters, size_t offset);

  const LocalStepsSpec spec_;
  std::vector<float> start_;  // all tensors, one after the other
  State state_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_LOCAL_STEPS_H_
