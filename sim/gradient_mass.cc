#include "sim/gradient_mass.h"

#include "absl/strings/str_cat.h"

namespace thinwire::sim {

Mass& Mass::operator+=(const Mass& other) {
  values += other.values;
  examples += other.examples;
  return *this;
}

Mass& Mass::operator-=(const Mass& other) {
  values -= other.values;
  examples -= other.examples;
  return *this;
}

std::ostream& operator<<(std::ostream& out, const Mass& mass) {
  return out << mass.values << " of " << mass.examples << " examples";
}

std::string NameOf(const GradientId& id) {
  return absl::StrCat("w", id.worker.value, "/", id.incarnation.value, " step ", id.step.value);
}

}  // namespace thinwire::sim
