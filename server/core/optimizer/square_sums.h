// SquareSums are sums of squares over the values of a shard, or of all shards that wait for their
// sum (rounds.h). The sums of all parts of an array, added up, are those of the array.
#ifndef THINWIRE_SERVER_CORE_OPTIMIZER_SQUARE_SUMS_H_
#define THINWIRE_SERVER_CORE_OPTIMIZER_SQUARE_SUMS_H_

#include <cmath>
#include <ostream>

namespace thinwire {

struct SquareSums {
  double update = 0;   // of the averaged gradient, or of the direction of an optimizer
  double masters = 0;  // of the masters before the update, for a trust ratio; otherwise 0

  SquareSums& operator+=(const SquareSums& other) {
    update += other.update;
    masters += other.masters;
    return *this;
  }
  // Returns whether both sums are finite and at least 0.
  bool valid() const {
    return std::isfinite(update) && update >= 0 && std::isfinite(masters) && masters >= 0;
  }
  bool operator==(const SquareSums&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const SquareSums& sums) {
    return out << "update^2 " << sums.update << " masters^2 " << sums.masters;
  }
};

// Returns the factor that limits a gradient to the norm LIMIT, at most 1.
inline double ClipFactor(double limit, double squared_norm) {
  const double norm = std::sqrt(squared_norm);
  return norm > limit ? limit / norm : 1;
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_OPTIMIZER_SQUARE_SUMS_H_
