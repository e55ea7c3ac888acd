// Median: the value in the middle of a list.
#ifndef THINWIRE_COMMON_BASE_MEDIAN_H_
#define THINWIRE_COMMON_BASE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace thinwire {

// Returns the median of VALUES, or T() if there are none. If their number is even, this is the
// larger one of the two values in the middle.
template <typename T>
T Median(std::vector<T> values) {
  if (values.empty()) return T();
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_MEDIAN_H_
