// The mass of gradients, which ledgers account for: the sum of their values and their examples.
#ifndef THINWIRE_SIM_GRADIENT_MASS_H_
#define THINWIRE_SIM_GRADIENT_MASS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "common/ids.h"

namespace thinwire::sim {

// Identifies one worker's gradient of one step for a shard.
struct GradientId {
  WorkerId worker;
  Incarnation incarnation;
  Step step;

  auto operator<=>(const GradientId&) const = default;
};

// The mass of gradients. The examples of a push include its late examples.
struct Mass {
  double values = 0;
  int64_t examples = 0;

  Mass& operator+=(const Mass& other);
  Mass& operator-=(const Mass& other);
  friend Mass operator+(Mass a, const Mass& b) { return a += b; }
  friend Mass operator-(Mass a, const Mass& b) { return a -= b; }
  friend std::ostream& operator<<(std::ostream& out, const Mass& mass);
};

// Returns "w3/1 step 12".
std::string NameOf(const GradientId& id);

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_GRADIENT_MASS_H_
