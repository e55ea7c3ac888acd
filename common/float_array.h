// FloatArray: a vector of floats in memory that its owner chooses: masters, slots, sums, residuals
// and momenta.
//
// Programs pass a HugePageArena (common/huge_page_arena.h) down to the classes that hold such
// arrays, because a pass over a shard, and even more a few additions at scattered places, spend
// much of their time on address translation. Tests use the default resource.
//
// A copied FloatArray takes the default resource, whatever its source has, unless the copy
// constructor gets another. Moving keeps the resource. The resource must outlive the array.
#ifndef THINWIRE_COMMON_FLOAT_ARRAY_H_
#define THINWIRE_COMMON_FLOAT_ARRAY_H_

#include <memory_resource>
#include <vector>

namespace thinwire {

using FloatArray = std::pmr::vector<float>;

}  // namespace thinwire

#endif  // THINWIRE_COMMON_FLOAT_ARRAY_H_
