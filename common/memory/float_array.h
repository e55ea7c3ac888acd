// FloatArray: a vector of floats whose memory resource the owner chooses. Masters, slots, sums,
// residuals and momenta are FloatArrays.
//
// Programs pass a HugePageArena (common/memory/huge_page_arena.h) to the classes that hold
// FloatArrays. Huge pages reduce the time for address translation, which is a large part of a pass
// over a shard and a larger part of a few additions at scattered indices. Tests use the default
// resource.
//
// A copy uses the default resource, not the resource of its source, unless the copy constructor
// gets a resource. Moving keeps the resource. The resource must outlive the array.
#ifndef THINWIRE_COMMON_MEMORY_FLOAT_ARRAY_H_
#define THINWIRE_COMMON_MEMORY_FLOAT_ARRAY_H_

#include <memory_resource>
#include <vector>

namespace thinwire {

using FloatArray = std::pmr::vector<float>;

}  // namespace thinwire

#endif  // THINWIRE_COMMON_MEMORY_FLOAT_ARRAY_H_
