#include "client/encode/gradient_clip.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace thinwire::client {

GradientClip::GradientClip(double gradient_clip, uint32_t worker_count, size_t tensor_count)
    : limit_(gradient_clip / std::sqrt(static_cast<double>(std::max(worker_count, 1u)))),
      squares_(tensor_count) {}

void GradientClip::Ready(uint32_t tensor, double squares) {
  if (!clips()) return;
  squares_[tensor] = squares;
  ++ready_count_;
}

float GradientClip::factor() const {
  if (!clips()) return 1 / scale_;
  const double norm = std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0)) / scale_;
  if (!std::isfinite(norm)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::min(1.0, limit_ / norm) / scale_);
}

}  // namespace thinwire::client
