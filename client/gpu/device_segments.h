// Copies the segments of a shard from tensors to a contiguous array (gather) and back (scatter).
// All arrays are in GPU memory. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_
#define THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_

#include <cstddef>
#include <span>

#include "common/model/partition.h"
#include "kernels/cuda/runtime/memory.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

// Returns the number of values in SEGMENTS.
size_t CountOf(std::span<const Segment> segments);

// Both functions below REQUIRE that every segment is within its tensor.

// Launches the copy of SEGMENTS of TENSORS to the beginning of TO, one segment after the other.
// Enlarges TO if necessary.
kernels::cuda::Status GatherOnDevice(std::span<const Segment> segments,
                                     std::span<const std::span<const float>> tensors,
                                     kernels::cuda::DeviceBuffer<float>& to,
                                     const kernels::cuda::Stream& stream);

// Launches the copy of VALUES to SEGMENTS of TENSORS. REQUIRES: values.size() == CountOf(segments).
kernels::cuda::Status ScatterOnDevice(std::span<const float> values,
                                      std::span<const Segment> segments,
                                      std::span<const std::span<float>> tensors,
                                      const kernels::cuda::Stream& stream);

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_SEGMENTS_H_
