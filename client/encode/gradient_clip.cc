#include "client/encode/gradient_clip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace thinwire::client {

// Accumulates eight independent sums, so that no addition waits for the result of the previous one.
double SumOfSquares(std::span<const float> values) {
  std::array<double, 8> sums{};
  size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (size_t lane = 0; lane < sums.size(); ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * double{values[i]};
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

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
