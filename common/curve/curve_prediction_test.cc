#include "common/curve/curve_prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace thinwire {
namespace {

std::vector<CurvePoint> PointsOf(const std::function<double(double)>& curve, double noise,
                                 uint64_t seed, int count = 12) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> error(0, noise);
  std::vector<CurvePoint> points;
  for (int i = 1; i <= count; ++i) {
    const double x = 10.0 * i;
    points.push_back({.x = x, .y = curve(x) + error(random)});
  }
  return points;
}

double Uniform(double low, double high, std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// Returns a curve of a random family with random parameters, and its noise.
std::function<double(double)> DrawCurve(std::mt19937_64& random) {
  const double final = Uniform(0.5, 0.98, random);
  const double distance = Uniform(0.05, 0.9, random) * final;  // at x = 10
  switch (std::uniform_int_distribution<int>(0, 2)(random)) {
    case 0: {
      const double power = std::exp(Uniform(std::log(0.1), std::log(1.5), random));
      return [=](double x) { return final - distance * std::pow(x / 10, -power); };
    }
    case 1: {
      const double exponent = Uniform(0.4, 1.2, random);
      const double rate = std::exp(Uniform(std::log(0.2), std::log(5), random));
      const auto grown = [=](double x) { return rate * std::pow(x / 120, exponent); };
      return [=](double x) { return final - distance * std::exp(grown(10) - grown(x)); };
    }
    default:
      return [=](double x) { return final - distance * std::log(11) / std::log(x + 1); };
  }
}

TEST(CurvePredictionTest, NineOfTenIntervalsContainTheCurve) {
  constexpr int kCurves = 300;
  std::mt19937_64 random(1);
  int covered = 0, fitted = 0;
  for (int i = 0; i < kCurves; ++i) {
    const auto curve = DrawCurve(random);
    const double noise = std::exp(Uniform(std::log(0.002), std::log(0.02), random));
    const double x = 120 * Uniform(1.5, 10, random);
    const CurvePrediction prediction = PredictCurve(PointsOf(curve, noise, 100 + i), x);
    fitted += prediction.fitted ? 1 : 0;
    // 90 % of a normal distribution are within 1.645 standard deviations.
    covered += std::abs(prediction.mean - curve(x)) <= 1.645 * prediction.deviation ? 1 : 0;
  }
  RecordProperty("covered", covered);
  EXPECT_GE(covered, kCurves * 0.85);
  EXPECT_LE(covered, kCurves * 0.95);
  EXPECT_GE(fitted, kCurves * 0.9);
}

TEST(CurvePredictionTest, AnExactCurveIsContinued) {
  const auto curve = [](double x) { return 0.9 - 0.5 * std::pow(x / 10, -0.8); };
  const CurvePrediction prediction = PredictCurve(PointsOf(curve, 0, 1, 30), 600);
  EXPECT_TRUE(prediction.fitted);
  EXPECT_NEAR(prediction.mean, curve(600), 0.01);
  EXPECT_LT(prediction.deviation, 0.01);
}

TEST(CurvePredictionTest, TheDeviationGrowsWithTheDistanceAndTheNoise) {
  const auto curve = [](double x) { return 0.8 - 0.6 * std::pow(x / 10, -0.6); };
  const auto deviation = [&](double noise, double x) {
    return PredictCurve(PointsOf(curve, noise, 3), x).deviation;
  };
  EXPECT_LT(deviation(0.003, 150), deviation(0.003, 1200));
  EXPECT_LT(deviation(0.003, 1200), deviation(0.03, 1200));
}

TEST(CurvePredictionTest, TheSamePointsHaveTheSamePrediction) {
  const auto points = PointsOf([](double x) { return 0.7 - 3 / x; }, 0.01, 5);
  EXPECT_EQ(PredictCurve(points, 500).mean, PredictCurve(points, 500).mean);
}

TEST(CurvePredictionTest, FewPointsAreExtrapolatedWithTheirMedianSlope) {
  const std::vector<CurvePoint> points = {{10, 0.2}, {20, 0.3}, {30, 0.4}};
  const CurvePrediction prediction = PredictCurve(points, 50);
  EXPECT_FALSE(prediction.fitted);
  EXPECT_NEAR(prediction.mean, 0.6, 1e-12);
  EXPECT_EQ(PredictCurve(points, 500).mean, 1) << "no accuracy is above 1";

  const CurvePrediction one = PredictCurve({points.data(), 1}, 50);
  EXPECT_EQ(one.mean, 0.2);
  EXPECT_EQ(one.deviation, 1);
}

TEST(CurvePredictionTest, ACurveThatFellIsNotPredictedToRise) {
  const auto points = PointsOf([](double x) { return 0.8 - 0.004 * x; }, 0.002, 7);
  EXPECT_LT(PredictCurve(points, 1000).mean, 0.7);
}

}  // namespace
}  // namespace thinwire
