// Curve keeps at most kMaxPointCount points of a curve that grows while training goes on. When it
// is full, it drops every second point, so the points that remain are spread evenly over the whole
// run.
#ifndef THINWIRE_ADMIN_CURVE_H_
#define THINWIRE_ADMIN_CURVE_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace thinwire {

// Not thread-safe.
class Curve {
 public:
  static constexpr size_t kMaxPointCount = 400;

  struct Point {
    double x = 0;
    double y = 0;

    bool operator==(const Point&) const = default;
  };

  // Adds a point, or skips it because the kept points are farther apart. Points with a value that
  // is not finite are skipped.
  void Add(double x, double y);

  // Returns the newest point; nullopt: there is none.
  std::optional<Point> newest() const {
    return kept_.empty() ? std::nullopt : std::optional(newest_);
  }
  // Returns the kept points and the newest point, in the order of Add().
  std::vector<Point> points() const;

 private:
  std::vector<Point> kept_;
  size_t stride_ = 1;   // one of `stride_` added points is kept
  size_t skipped_ = 0;  // points since the last kept point
  Point newest_;
};

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_CURVE_H_
