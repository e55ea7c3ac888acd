#include "experiments/toy_quadratic.h"

#include <cmath>

#include "common/repeatable_math.h"

namespace thinwire {

ToyQuadratic::ToyQuadratic(size_t value_count, size_t worker_count, double sigma, uint64_t seed)
    : sigma_(sigma), bits_(seed), places_(worker_count) {
  std::vector<double> common;
  for (size_t i = 0; i < value_count; ++i) {
    steepness_.push_back(Power(0.1, Uniform()));
    common.push_back(Draw());
  }
  for (std::vector<double>& place : places_) {
    for (const double shared : common) place.push_back(shared + Draw());
  }
}

std::vector<float> ToyQuadratic::Gradient(size_t worker, std::span<const double> x) {
  std::vector<float> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double noise = sigma_ == 0 ? 0 : sigma_ * Draw();
    gradient[i] = static_cast<float>(steepness_[i] * (x[i] - places_[worker][i]) + noise);
  }
  return gradient;
}

double ToyQuadratic::Loss(std::span<const double> x) const {
  double loss = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double bottom = 0;
    for (const std::vector<double>& place : places_) bottom += place[i];
    bottom /= static_cast<double>(places_.size());
    loss += steepness_[i] * (x[i] - bottom) * (x[i] - bottom) / 2;
  }
  return loss;
}

double ToyQuadratic::Draw() { return std::sqrt(12.0) * (Uniform() - 0.5); }

double ToyQuadratic::Uniform() {
  return static_cast<double>(bits_() >> 11) / static_cast<double>(uint64_t{1} << 53);
}

}  // namespace thinwire
