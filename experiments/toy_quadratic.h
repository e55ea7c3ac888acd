// A toy on which selection rules can be told apart: every worker pulls towards a place of its own.
//
//   f_w(x) = sum over i of steepness_i (x_i - place_wi)^2 / 2      the mean over w is minimised
//   gradient of w = steepness_i (x_i - place_wi) + sigma noise
//
// steepness is log-uniform from 0.1 to 1; place_wi = common_i + own_wi, both with deviation 1. All
// numbers are drawn from one seed, the same on every machine.
#ifndef THINWIRE_EXPERIMENTS_TOY_QUADRATIC_H_
#define THINWIRE_EXPERIMENTS_TOY_QUADRATIC_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace thinwire {

class ToyQuadratic {
 public:
  ToyQuadratic(size_t value_count, size_t worker_count, double sigma, uint64_t seed);

  // The next gradient of WORKER at X.
  std::vector<float> Gradient(size_t worker, std::span<const double> x);
  // The mean of the workers' losses at X, less the smallest it can be.
  double Loss(std::span<const double> x) const;

 private:
  // Uniform, of mean 0 and deviation 1.
  double Draw();
  double Uniform();  // from 0 to below 1

  const double sigma_;
  std::mt19937_64 bits_;
  std::vector<double> steepness_;
  std::vector<std::vector<double>> places_;  // by worker
};

}  // namespace thinwire

#endif  // THINWIRE_EXPERIMENTS_TOY_QUADRATIC_H_
