// CollectTiles: the pass of a selection of the top k that goes through all the values. It adds the
// gradient and collects what reaches the magnitude that the last selection left, tile by tile, in
// the order of the indices. Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_COLLECT_TILES_H_
#define THINWIRE_KERNELS_CUDA_COLLECT_TILES_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/top_k_workspace.h"

namespace thinwire::kernels::cuda {

// VALUES become values + GRADIENT, if there is one.
struct SelectFrom {
  const float* gradient;
  float* values;
  size_t count;
};

// REQUIRES: the state of WORK is zeros.
Status CollectTiles(const SelectFrom& from, const uint32_t* collect_from, const TopKWorkspace& work,
                    const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_COLLECT_TILES_H_
