// GradientClip: the factor that keeps a worker's whole gradient within a norm, and takes out the
// scale that its loss was multiplied by.
//
//   factor = min(1, limit / |g|) / scale     |g|: over all tensors of the step, without the scale
//   limit  = gradient_clip / sqrt(workers)
//
// (Lin et al. 2018, section 3.2: where gradients go through a residual a worker clips its own,
// before it is added; the sum of independent gradients has sqrt(workers) times the norm of one.)
// The norm is known when the last tensor is ready, so under clipping no shard is encoded while
// backward runs (docs/decisions/0040). One value that is not finite makes the norm so: then nothing
// of the gradient is sent.
#ifndef THINWIRE_CLIENT_GRADIENT_CLIP_H_
#define THINWIRE_CLIENT_GRADIENT_CLIP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace thinwire::client {

// Of the squares of VALUES, the same on every machine. Pure: thread-safe.
double SumOfSquares(std::span<const float> values);

// Not thread-safe.
class GradientClip {
 public:
  // GRADIENT_CLIP is the limit of all workers together; 0 does not clip.
  GradientClip(double gradient_clip, uint32_t worker_count, size_t tensor_count);

  // A new step, whose gradients come SCALE times as large as they are.
  void Begin(float scale = 1) {
    scale_ = scale;
    ready_count_ = 0;
  }
  // Whether the norm is asked for.
  bool clips() const { return limit_ != 0; }
  // Once per tensor and step. SQUARES is the sum of its values' squares.
  void Ready(uint32_t tensor, double squares);

  // Whether factor() is known: always where nothing is clipped, else when all tensors are ready.
  bool known() const { return !clips() || ready_count_ == squares_.size(); }
  // What to multiply every value with; NaN if the norm is asked for and not finite. REQUIRES:
  // known().
  float factor() const;

 private:
  const double limit_;
  float scale_ = 1;
  std::vector<double>
      squares_;  // a tensor's sum of squares; added up in one order, whoever is first
  size_t ready_count_ = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_GRADIENT_CLIP_H_
