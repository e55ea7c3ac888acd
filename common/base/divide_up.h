// DivideUp: a quotient of whole numbers, rounded up.
#ifndef THINWIRE_COMMON_BASE_DIVIDE_UP_H_
#define THINWIRE_COMMON_BASE_DIVIDE_UP_H_

#include <cstdint>

namespace thinwire {

// Returns the smallest number of parts of at most BY that N has. REQUIRES: by > 0.
constexpr uint64_t DivideUp(uint64_t n, uint64_t by) { return n / by + (n % by != 0); }

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_DIVIDE_UP_H_
