// The sum of the squares of an array's values, in double, written to memory of the device. It is
// the same on every GPU, for arrays that begin alike at 16 bytes, and differs from one that adds up
// in another order by rounding alone.
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SUM_OF_SQUARES_H_
#define THINWIRE_KERNELS_CUDA_SUM_OF_SQUARES_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// How many partial sums there are of COUNT values.
size_t PartialSumsOfSquares(size_t count);

// PARTIAL is room for that many on the device, as SUM is for one.
Status SumOfSquares(std::span<const float> values, std::span<double> partial, double* sum,
                    const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SUM_OF_SQUARES_H_
