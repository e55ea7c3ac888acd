#include "admin/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace thinwire {
namespace {

using testing::ElementsAre;

TEST(CurveTest, FewPointsAreKept) {
  Curve curve;
  curve.Add(1, 0.5);
  curve.Add(2, std::numeric_limits<double>::quiet_NaN());
  curve.Add(3, 0.25);
  EXPECT_THAT(curve.points(), ElementsAre(Curve::Point{1, 0.5}, Curve::Point{3, 0.25}));
}

TEST(CurveTest, ManyPointsAreThinnedEvenly) {
  Curve curve;
  constexpr int kCount = 100001;
  for (int i = 0; i < kCount; ++i) {
    curve.Add(i, 2.0 * i);
    ASSERT_LE(curve.points().size(), Curve::kMaxPointCount + 1);
  }
  const auto points = curve.points();
  EXPECT_GE(points.size(), Curve::kMaxPointCount / 2);
  EXPECT_EQ(points.front(), (Curve::Point{0, 0}));
  EXPECT_EQ(points.back(), (Curve::Point{kCount - 1, 2.0 * (kCount - 1)}));
  const double distance = points[1].x - points[0].x;
  int checked = 0;
  for (size_t i = 1; i + 1 < points.size(); ++i) {
    EXPECT_EQ(points[i].x - points[i - 1].x, distance);
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace thinwire
