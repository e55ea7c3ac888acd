#include "experiments/toy_run.h"

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "common/base/repeatable_math.h"

namespace thinwire {
namespace {

// The loss functions of all workers and the source of the gradient noise.
class ToyQuadratic {
 public:
  explicit ToyQuadratic(const ToySettings& settings)
      : sigma_(settings.sigma), bits_(settings.seed), minima_(settings.worker_count) {
    std::vector<double> common;
    for (size_t i = 0; i < settings.value_count; ++i) {
      steepness_.push_back(Power(0.1, Uniform()));
      common.push_back(Draw());
    }
    for (std::vector<double>& minimum : minima_) {
      for (const double shared : common) minimum.push_back(shared + Draw());
    }
  }

  // Returns the next noisy gradient of WORKER at X.
  std::vector<float> Gradient(size_t worker, std::span<const double> x) {
    std::vector<float> gradient(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double noise = sigma_ == 0 ? 0 : sigma_ * Draw();
      gradient[i] = static_cast<float>(steepness_[i] * (x[i] - minima_[worker][i]) + noise);
    }
    return gradient;
  }

  // Returns the mean loss of the workers at X, minus the smallest possible mean loss.
  double Loss(std::span<const double> x) const {
    double loss = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double minimum = 0;
      for (const std::vector<double>& own : minima_) minimum += own[i];
      minimum /= static_cast<double>(minima_.size());
      loss += steepness_[i] * (x[i] - minimum) * (x[i] - minimum) / 2;
    }
    return loss;
  }

 private:
  // Returns a uniform number with mean 0 and standard deviation 1.
  double Draw() { return std::sqrt(12.0) * (Uniform() - 0.5); }

  // Returns a uniform number in [0, 1).
  double Uniform() {
    return static_cast<double>(bits_() >> 11) / static_cast<double>(uint64_t{1} << 53);
  }

  const double sigma_;
  std::mt19937_64 bits_;
  std::vector<double> steepness_;
  std::vector<std::vector<double>> minima_;  // for each worker: the minimum of its loss
};

// The sums over all steps of the gradients and of the applied values, averaged over the workers.
class MassBalance {
 public:
  explicit MassBalance(size_t value_count) : gradients_(value_count), applied_(value_count) {}

  void AddGradients(std::span<const std::vector<float>> gradients) {
    for (const auto& gradient : gradients) {
      for (size_t i = 0; i < gradients_.size(); ++i) {
        gradients_[i] += gradient[i] / static_cast<double>(gradients.size());
      }
    }
  }
  void AddApplied(std::span<const float> average) {
    for (size_t i = 0; i < applied_.size(); ++i) applied_[i] += average[i];
  }
  std::vector<double> Missing(std::span<const double> pending) const {
    std::vector<double> missing(gradients_.size());
    for (size_t i = 0; i < missing.size(); ++i) {
      missing[i] = gradients_[i] - applied_[i] - pending[i];
    }
    return missing;
  }
  const std::vector<double>& gradients() const { return gradients_; }

 private:
  std::vector<double> gradients_;
  std::vector<double> applied_;
};

// Returns the sum of |a_i - b_i|. An empty B means zeros.
double SumOfMagnitudes(std::span<const double> a, std::span<const double> b = {}) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - (b.empty() ? 0 : b[i]));
  return sum;
}

}  // namespace

ToyOutcome RunToy(const ToySettings& settings, Aggregation& aggregation) {
  ToyQuadratic toy(settings);
  MassBalance balance(settings.value_count);
  std::vector<double> x(settings.value_count);
  std::vector<double> missing(settings.value_count);
  ToyOutcome outcome;
  for (size_t step = 0; step < settings.step_count; ++step) {
    std::vector<std::vector<float>> gradients;
    for (size_t w = 0; w < settings.worker_count; ++w) gradients.push_back(toy.Gradient(w, x));
    balance.AddGradients(gradients);
    const std::vector<float> average = aggregation.Step(gradients);
    balance.AddApplied(average);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= settings.rate * average[i];
    const std::vector<double> missing_now = balance.Missing(aggregation.Pending());
    if (aggregation.selected() > 0) {
      const double lost = SumOfMagnitudes(missing_now, missing);
      outcome.leak += lost * static_cast<double>(settings.worker_count) / aggregation.selected();
    }
    missing = missing_now;
  }
  outcome.leak /= static_cast<double>(settings.step_count);
  outcome.missing = SumOfMagnitudes(missing) / SumOfMagnitudes(balance.gradients());
  outcome.loss = toy.Loss(x);
  return outcome;
}

double ToyStartLoss(const ToySettings& settings) {
  return ToyQuadratic(settings).Loss(std::vector<double>(settings.value_count));
}

}  // namespace thinwire
