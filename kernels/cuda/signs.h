// kernels/signs.h on the GPU: signs of values, a bit each, and back by a table of two for each
// GROUP of values (the last may be shorter), which lies on the device, too. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_SIGNS_H_
#define THINWIRE_KERNELS_CUDA_SIGNS_H_

#include <cstddef>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES, for all: what kernels/signs.h does; group > 0; entries.size() is twice the groups;
// fewer than 2^32 values.
Status PutSigns(std::span<const float> values, std::byte* bits, const Stream& stream);
Status TakeSigns(std::span<const float> entries, size_t group, std::span<float> values,
                 std::byte* bits, const Stream& stream);

Status FromSigns(const std::byte* bits, std::span<const float> entries, size_t group,
                 std::span<float> out, const Stream& stream);
Status AddFromSigns(const std::byte* bits, std::span<const float> entries, size_t group,
                    std::span<float> sum, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_SIGNS_H_
