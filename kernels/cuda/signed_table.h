// SignedTable: from magnitudes that do not fall to all that values are coded by, the top bit of a
// code being its sign.
//
//   table        m(0) .. m(h-1), -m(0) .. -m(h-1)
//   thresholds   halfway between m(i) and m(i+1), h - 1 of them
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SIGNED_TABLE_H_
#define THINWIRE_KERNELS_CUDA_SIGNED_TABLE_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// Also writes the magnitudes to NUMBERS, floats at any address, unless that is null. REQUIRES: all
// on the device; at most 128 magnitudes, as many thresholds less one, a table of twice as many.
Status SignedTable(std::span<const float> magnitudes, std::byte* numbers, std::span<float> table,
                   std::span<float> thresholds, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SIGNED_TABLE_H_
