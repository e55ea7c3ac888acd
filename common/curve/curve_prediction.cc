#include "common/curve/curve_prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "common/base/median.h"

namespace thinwire {
namespace {

constexpr uint64_t kSeed = 20150725;
constexpr size_t kLeastPoints = 4;
// The least effective number of samples of a usable posterior.
constexpr double kLeastSamples = 50;

// The prior. Final accuracy and distance are normal, the other parameters are uniform in their
// logarithm.
constexpr double kFinalMean = 0.7, kFinalDeviation = 0.3;
constexpr double kDistanceMean = 0.3, kDistanceDeviation = 0.4;
// The standard deviation of a test. That of 10,000 examples at an accuracy of 0.9 is 0.003.
constexpr double kNoises[] = {0.002, 0.003, 0.0045, 0.0068, 0.01, 0.015, 0.023, 0.034, 0.05};
constexpr double kLeastPower = 0.05, kMostPower = 2;
constexpr double kLeastRate = 0.05, kMostRate = 20;  // k x^d at the last point
constexpr double kLeastExponent = 0.3, kMostExponent = 1.5;

// Returns the last accuracy plus the Theil-Sen slope. The deviation grows with the distance from
// the points.
CurvePrediction Extrapolate(std::span<const CurvePoint> points, double x) {
  const CurvePoint& last = points.back();
  // One point has no slope, and nothing says how exact it is.
  if (points.size() == 1) return {.mean = std::clamp(last.y, 0.0, 1.0), .deviation = 1};
  std::vector<double> slopes;
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = i + 1; j < points.size(); ++j) {
      slopes.push_back((points[j].y - points[i].y) / (points[j].x - points[i].x));
    }
  }
  const double slope = Median(slopes);
  std::vector<double> distances;
  for (const CurvePoint& point : points) {
    distances.push_back(std::abs(point.y - last.y - slope * (point.x - last.x)));
  }
  const double distance = x - last.x;
  const double growth = 1 + distance / (last.x - points.front().x);
  return {.mean = std::clamp(last.y + slope * distance, 0.0, 1.0),
          .deviation = std::max(kNoises[0], 1.4826 * Median(distances)) * growth};
}

// The part of the distance that is left at a step, 1 at the first tested step: y = c - g * left.
class Shape {
 public:
  // Draws a family and its parameters. LAST is the last tested step.
  Shape(double first, double last, std::mt19937_64& random)
      : first_(first), family_(std::uniform_int_distribution<int>(0, 2)(random)) {
    const auto draw = [&](double least, double most) {
      return std::exp(
          std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
    };
    if (family_ == 0) power_ = draw(kLeastPower, kMostPower);
    if (family_ != 1) return;
    power_ = draw(kLeastExponent, kMostExponent);
    rate_ = draw(kLeastRate, kMostRate) / std::pow(last, power_);
  }

  double LeftAt(double x) const {
    switch (family_) {
      case 0:
        return std::pow(x / first_, -power_);
      case 1:
        return std::exp(-rate_ * (std::pow(x, power_) - std::pow(first_, power_)));
      default:
        return std::log(first_ + 1) / std::log(x + 1);
    }
  }

 private:
  double first_;
  int family_;
  double power_ = 0;
  double rate_ = 0;
};

// The posterior of c and g, given the shape and the noise: a normal distribution.
class Posterior {
 public:
  // The sums over the points that the posterior depends on. LEFT is Shape::LeftAt of a point.
  struct Sums {
    double count = 0;
    double left = 0, left_left = 0;
    double y = 0, y_left = 0, y_y = 0;
  };

  // The regression of y on (1, -left) with a normal prior.
  Posterior(const Sums& sums, double noise) {
    const double precision = 1 / (noise * noise);
    const double prior_c = 1 / (kFinalDeviation * kFinalDeviation);
    const double prior_g = 1 / (kDistanceDeviation * kDistanceDeviation);
    // The precision matrix, and its product with the mean.
    cc_ = prior_c + precision * sums.count;
    cg_ = -precision * sums.left;
    const double gg = prior_g + precision * sums.left_left;
    const double to_c = prior_c * kFinalMean + precision * sums.y;
    const double to_g = prior_g * kDistanceMean - precision * sums.y_left;
    determinant_ = cc_ * gg - cg_ * cg_;
    mean_c_ = (gg * to_c - cg_ * to_g) / determinant_;
    mean_g_ = (cc_ * to_g - cg_ * to_c) / determinant_;
    log_likelihood_ = -sums.count * std::log(noise) - 0.5 * std::log(determinant_) -
                      0.5 * (precision * sums.y_y - mean_c_ * to_c - mean_g_ * to_g);
  }

  // Returns the logarithm of the points' likelihood, without a constant.
  double log_likelihood() const { return log_likelihood_; }

  struct Line {
    double c = 0;
    double g = 0;
  };
  Line Draw(std::mt19937_64& random) const {
    // The Cholesky factor of the precision matrix turns two standard normal numbers into a draw.
    std::normal_distribution<double> normal;
    const double u = normal(random), v = normal(random);
    Line line{.g = mean_g_ + v * std::sqrt(cc_ / determinant_)};
    line.c = mean_c_ - cg_ / cc_ * (line.g - mean_g_) + u / std::sqrt(cc_);
    return line;
  }

 private:
  double cc_, cg_, determinant_;
  double mean_c_, mean_g_;
  double log_likelihood_;
};

Posterior::Sums SumsOf(std::span<const CurvePoint> points, const Shape& shape) {
  Posterior::Sums sums;
  for (const CurvePoint& point : points) {
    const double left = shape.LeftAt(point.x);
    sums.count += 1;
    sums.left += left;
    sums.left_left += left * left;
    sums.y += point.y;
    sums.y_left += point.y * left;
    sums.y_y += point.y * point.y;
  }
  return sums;
}

struct Sample {
  double log_weight = 0;
  double y = 0;
};

// Draws a curve and returns its weight and its value at X; nullopt if it is impossible.
std::optional<Sample> Draw(std::span<const CurvePoint> points, double x, std::mt19937_64& random) {
  const Shape shape(points.front().x, points.back().x, random);
  const Posterior::Sums sums = SumsOf(points, shape);
  // All noises together give the weight; one of them, drawn by its part, gives c and g.
  std::array<double, std::size(kNoises)> parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = Posterior(sums, kNoises[i]).log_likelihood();
  }
  const double largest = *std::ranges::max_element(parts);
  double sum = 0;
  for (double& part : parts) sum += part = std::exp(part - largest);
  double rest = std::uniform_real_distribution<double>(0, sum)(random);
  size_t chosen = 0;
  while (chosen + 1 < parts.size() && rest > parts[chosen]) rest -= parts[chosen++];
  const auto [c, g] = Posterior(sums, kNoises[chosen]).Draw(random);
  if (c < 0 || c > 1 || g < 0) return std::nullopt;
  return Sample{.log_weight = largest + std::log(sum), .y = c - g * shape.LeftAt(x)};
}

}  // namespace

CurvePrediction PredictCurve(std::span<const CurvePoint> points, double x, uint32_t sample_count) {
  if (points.size() < kLeastPoints) return Extrapolate(points, x);
  std::mt19937_64 random(kSeed);
  std::vector<Sample> samples;
  double largest = -std::numeric_limits<double>::infinity();
  for (uint32_t i = 0; i < sample_count; ++i) {
    const std::optional<Sample> sample = Draw(points, x, random);
    if (!sample.has_value()) continue;
    largest = std::max(largest, sample->log_weight);
    samples.push_back(*sample);
  }
  double sum = 0, squares = 0, mean = 0, variance = 0;
  for (const Sample& sample : samples) {
    const double weight = std::exp(sample.log_weight - largest);
    sum += weight;
    squares += weight * weight;
    mean += weight * sample.y;
  }
  if (samples.empty() || sum * sum / squares < kLeastSamples) return Extrapolate(points, x);
  mean /= sum;
  for (const Sample& sample : samples) {
    variance += std::exp(sample.log_weight - largest) * (sample.y - mean) * (sample.y - mean) / sum;
  }
  return {.mean = mean, .deviation = std::sqrt(variance), .fitted = true};
}

}  // namespace thinwire
