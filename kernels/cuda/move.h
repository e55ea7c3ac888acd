// Moves floats by so many floats (kernels/float_order.h) on the GPU. Thread-safe.
//
//   Move     every value by its move
//   MoveAt   the values at some indices
#ifndef THINWIRE_KERNELS_CUDA_MOVE_H_
#define THINWIRE_KERNELS_CUDA_MOVE_H_

#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// A move is taken modulo 2^32. REQUIRES, for both: all on the device, as many moves as values or
// indices; no index comes twice.

Status Move(std::span<const uint32_t> moves, std::span<float> values, const Stream& stream);

Status MoveAt(std::span<const uint32_t> indices, std::span<const uint32_t> moves,
              std::span<float> values, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_MOVE_H_
