#include "admin/curve.h"

#include <cmath>

namespace thinwire {

void Curve::Add(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return;
  newest_ = {x, y};
  if (!kept_.empty() && ++skipped_ < stride_) return;
  skipped_ = 0;
  if (kept_.size() == kMaxPointCount) {
    std::vector<Point> half;
    for (size_t i = 0; i < kept_.size(); i += 2) half.push_back(kept_[i]);
    kept_ = std::move(half);
    stride_ *= 2;
  }
  kept_.push_back(newest_);
}

std::vector<Curve::Point> Curve::points() const {
  std::vector<Point> points = kept_;
  if (skipped_ > 0) points.push_back(newest_);
  return points;
}

}  // namespace thinwire
