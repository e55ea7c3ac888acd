// Predicts the continuation of a learning curve: the accuracy y after x steps, from the accuracies
// that were tested so far.
//
//   pow3        c - g (x / x1)^-a
//   Janoschek   c - g exp(-k (x^d - x1^d))
//   ilog2       c - g ln(x1 + 1) / ln(x + 1)
//
// x1 is the first tested step, c the final accuracy, and g the distance to it at x1. A test has
// normal noise. The posterior is computed by importance sampling: the shape (a, or k and d) is
// drawn from its prior; the noise, c and g are drawn from their posterior, given the shape. Samples
// with c outside [0, 1] or a negative g are impossible. The method follows Domhan et al. 2015 and
// Klein et al. 2017; the three families are those of LC-PFN (Adriaensen et al. 2023).
#ifndef THINWIRE_COMMON_CURVE_CURVE_PREDICTION_H_
#define THINWIRE_COMMON_CURVE_CURVE_PREDICTION_H_

#include <cstdint>
#include <span>

namespace thinwire {

struct CurvePoint {
  double x = 0;  // steps, above 0
  double y = 0;  // accuracy, 0 to 1
};

struct CurvePrediction {
  double mean = 0;
  double deviation = 0;  // the standard deviation of the curve's value, without the noise of a test
  // False: there are fewer than four points, or too few samples agree with them. MEAN is then the
  // last accuracy plus the Theil-Sen slope of the points, limited to [0, 1].
  bool fitted = false;
};

// Returns the prediction at X. The same arguments give the same result. Takes about 12 ms.
// REQUIRES: POINTS are not empty, their x ascend and are above 0; X is not below the last x.
CurvePrediction PredictCurve(std::span<const CurvePoint> points, double x,
                             uint32_t sample_count = 20000);

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CURVE_CURVE_PREDICTION_H_
