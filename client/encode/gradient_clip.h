// GradientClip: computes the factor that limits the norm of a worker's whole gradient and removes
// the loss scale.
//
//   factor = min(1, limit / |g|) / scale
//   limit  = gradient_clip / sqrt(workers)
//
// |g| is the Euclidean norm over all tensors of the step, after division by the loss scale.
// With error feedback each worker clips its own gradient before it adds the residual. The sum of
// independent gradients has sqrt(workers) times the norm of one (Lin et al. 2018, section 3.2).
// The norm is known when the last tensor is ready, so with clipping no shard is encoded during the
// backward pass (docs/decisions/0040). If one value is not finite, neither is the norm, and the
// client sends no value of the gradient.
#ifndef THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_
#define THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thinwire::client {

// Returns the sum of the squares of VALUES; bit-equal on every machine.
double SumOfSquares(std::span<const float> values);

// Not thread-safe.
class GradientClip {
 public:
  // GRADIENT_CLIP limits the norm of all workers' gradients together; 0: no limit.
  GradientClip(double gradient_clip, uint32_t worker_count, size_t tensor_count);

  // Starts a step whose gradients are multiplied by SCALE.
  void Begin(float scale = 1) {
    scale_ = scale;
    ready_count_ = 0;
  }
  // Returns whether there is a limit, so that the norm is needed.
  bool clips() const { return limit_ != 0; }
  // Sets the sum of the squares of TENSOR's values. Call once per tensor and step.
  void Ready(uint32_t tensor, double squares);

  // Returns whether factor() is known: at once without a limit, else when all tensors are ready.
  bool known() const { return !clips() || ready_count_ == squares_.size(); }
  // Returns the factor for every value; NaN if there is a limit and the norm is not finite.
  // REQUIRES: known().
  float factor() const;

 private:
  const double limit_;
  float scale_ = 1;
  // Each tensor's sum of squares. They are added in tensor order, so the order of the Ready calls
  // does not change the result.
  std::vector<double> squares_;
  size_t ready_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_
