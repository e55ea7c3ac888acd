// Arrays of Python programs: NumPy's, and those of any library that speaks DLPack or the buffer
// protocol.
#ifndef THINWIRE_PYTHON_ARRAYS_H_
#define THINWIRE_PYTHON_ARRAYS_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/partition.h"

namespace thinwire {

using AnyArray = nanobind::ndarray<nanobind::ro>;

// Returns the values of ARRAY. PLACE names it in the error for an array that is not a contiguous
// fp32 array in the host's memory with COUNT values.
std::span<const float> ValuesOf(const AnyArray& array, uint64_t count, const std::string& place);

// Returns a writable NumPy array of VALUES, which OWNER keeps alive, with the shape of TENSOR.
nanobind::object ArrayOf(std::span<float> values, const TensorShape& tensor,
                         nanobind::handle owner);
// Returns a NumPy array that owns VALUES.
nanobind::object ArrayOf(std::vector<float> values, const TensorShape& tensor);

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_ARRAYS_H_
