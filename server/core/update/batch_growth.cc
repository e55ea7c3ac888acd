#include "server/core/update/batch_growth.h"

namespace thinwire {

bool BatchGrowth::Doubles(const NoiseEstimate& noise, uint64_t batch) {
  // The estimate of |G|^2 may be negative if it is much smaller than the noise.
  const double least_scale = 2 * static_cast<double>(batch) * spec_.ratio;
  const bool noisy = noise.variance > 0 && least_scale * noise.squared_gradient <= noise.variance;
  // A server that was started again measures anew.
  const bool anew = batch != batch_ || noise.rounds < failed_round_;
  if (anew || !noisy || 2 * batch > spec_.largest_batch) failed_round_ = noise.rounds;
  batch_ = batch;
  return noise.rounds >= failed_round_ + kRounds;
}

}  // namespace thinwire
