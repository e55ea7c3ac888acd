// Segments of tensors on a GPU (client/splitter.h has those of the host). Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_

#include <cstddef>
#include <span>

#include "common/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

size_t CountOf(std::span<const Segment> segments);

// TO begins with the values that SEGMENTS name of TENSORS, one segment after the other. REQUIRES,
// for all: as Gather and Scatter of client/splitter.h.
kernels::cuda::Status GatherOnDevice(std::span<const Segment> segments,
                                     std::span<const std::span<const float>> tensors,
                                     kernels::cuda::DeviceBuffer<float>& to,
                                     const kernels::cuda::Stream& stream);

kernels::cuda::Status ScatterOnDevice(std::span<const float> values,
                                      std::span<const Segment> segments,
                                      std::span<const std::span<float>> tensors,
                                      const kernels::cuda::Stream& stream);

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_
