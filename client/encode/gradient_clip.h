// GradientClip: computes a factor for a worker's whole gradient. The factor limits the gradient's
// norm and divides the gradient by the loss scale.
//
//   factor = min(1, limit / |g|) / scale     |g|: norm over all tensors, without the loss scale
//   limit  = gradient_clip / sqrt(workers)
//
// With error feedback each worker clips its own gradient before it adds the residual. The sum of
// independent gradients has sqrt(workers) times the norm of one (Lin et al. 2018, section 3.2). The
// norm is known only when the last tensor is ready. With clipping, therefore, no shard is encoded
// during the backward pass (docs/decisions/0040). If any value of the gradient is not finite, the
// norm is not finite either, and the client sends no values in this step.
#ifndef THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_
#define THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thinwire::client {

// Not thread-safe.
class GradientClip {
 public:
  // GRADIENT_CLIP is the limit on the norm of the sum of all workers' gradients; 0 means no limit.
  GradientClip(double gradient_clip, uint32_t worker_count, size_t tensor_count);

  // Starts a step. SCALE is the loss scale that the step's gradients are multiplied by.
  void Begin(float scale = 1) {
    scale_ = scale;
    ready_count_ = 0;
  }
  // Returns true if there is a limit; only then does the client need to compute the norm.
  bool clips() const { return limit_ != 0; }
  // Sets the sum of the squares of TENSOR's gradient to SQUARES. Call once per tensor and step.
  void Ready(uint32_t tensor, double squares);

  // Returns true if factor() is known. Without a limit it is always known; otherwise it is known
  // once all tensors are ready.
  bool known() const { return !clips() || ready_count_ == squares_.size(); }
  // Returns the factor by which every value of the gradient is multiplied; NaN if there is a limit
  // and the norm is not finite. REQUIRES: known().
  float factor() const;

 private:
  const double limit_;
  float scale_ = 1;
  // The sum of squares of each tensor. The sums are added in the order of the tensors, so the order
  // of the Ready calls does not change the norm.
  std::vector<double> squares_;
  size_t ready_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_GRADIENT_CLIP_H_
