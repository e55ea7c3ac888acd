#include "experiments/toy_run.h"

#include <cmath>
#include <vector>

#include "experiments/toy_quadratic.h"

namespace thinwire {
namespace {

// What was given, applied and is owed, as averages.
class Books {
 public:
  explicit Books(size_t value_count) : given_(value_count), applied_(value_count) {}

  void Give(std::span<const std::vector<float>> gradients) {
    for (const auto& gradient : gradients) {
      for (size_t i = 0; i < given_.size(); ++i) {
        given_[i] += gradient[i] / static_cast<double>(gradients.size());
      }
    }
  }
  void Apply(std::span<const float> average) {
    for (size_t i = 0; i < applied_.size(); ++i) applied_[i] += average[i];
  }
  std::vector<double> Missing(std::span<const double> owed) const {
    std::vector<double> missing(given_.size());
    for (size_t i = 0; i < missing.size(); ++i) missing[i] = given_[i] - applied_[i] - owed[i];
    return missing;
  }
  const std::vector<double>& given() const { return given_; }

 private:
  std::vector<double> given_;
  std::vector<double> applied_;
};

// Of A - B; B may be empty for zeros.
double SumOfMagnitudes(std::span<const double> a, std::span<const double> b = {}) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - (b.empty() ? 0 : b[i]));
  return sum;
}

}  // namespace

ToyOutcome RunToy(const ToySettings& settings, Exchange& exchange) {
  ToyQuadratic toy(settings.value_count, settings.worker_count, settings.sigma, settings.seed);
  Books books(settings.value_count);
  std::vector<double> x(settings.value_count);
  std::vector<double> missing(settings.value_count);
  ToyOutcome outcome;
  for (size_t step = 0; step < settings.step_count; ++step) {
    std::vector<std::vector<float>> gradients;
    for (size_t w = 0; w < settings.worker_count; ++w) gradients.push_back(toy.Gradient(w, x));
    books.Give(gradients);
    const std::vector<float> average = exchange.Step(gradients);
    books.Apply(average);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= settings.rate * average[i];
    const std::vector<double> missing_now = books.Missing(exchange.Owed());
    if (exchange.selected() > 0) {
      const double lost = SumOfMagnitudes(missing_now, missing);
      outcome.leak += lost * static_cast<double>(settings.worker_count) / exchange.selected();
    }
    missing = missing_now;
  }
  outcome.leak /= static_cast<double>(settings.step_count);
  outcome.missing = SumOfMagnitudes(missing) / SumOfMagnitudes(books.given());
  outcome.loss = toy.Loss(x);
  return outcome;
}

}  // namespace thinwire
