// DeviceUlpDelta: ULP deltas (common/codec/delta/ulp_delta.h) of values that lie on a GPU.
//
// A code of variable length is read by one thread, so the host reads it, and what crosses the bus
// is the shorter of two: each index and by how many floats its value moves, 8 bytes an entry, or
// such a number for every value, 4 bytes a value, 0 where nothing moves.
//
// Used like a DeviceDecoder (device_decode.h). Immutable. Thread-safe.
#ifndef THINWIRE_CLIENT_GPU_DEVICE_ULP_DELTA_H_
#define THINWIRE_CLIENT_GPU_DEVICE_ULP_DELTA_H_

#include <cstddef>
#include <span>

#include "common/codec/delta/ulp_delta.h"
#include "kernels/cuda/runtime/status.h"
#include "kernels/cuda/runtime/stream.h"

namespace thinwire::client::gpu {

class DeviceUlpDelta {
 public:
  // DELTA outlives the object.
  explicit DeviceUlpDelta(const UlpDelta& delta) : delta_(delta) {}

  size_t staged_bytes() const;
  // REQUIRES: staged.size() == staged_bytes(), from a multiple of 4 bytes on.
  void Stage(std::span<std::byte> staged) const;

  // REQUIRES: STAGED is what Stage wrote, of staged_bytes(), and lies on the device from a multiple
  // of 256 bytes on; VALUES are COUNT there.
  kernels::cuda::Status Apply(std::span<const std::byte> staged, std::span<float> values,
                              const kernels::cuda::Stream& stream) const;

 private:
  // Whether a number for every value is the shorter.
  bool StagesAll() const { return delta_.count() < 2 * delta_.entry_count(); }

  const UlpDelta& delta_;
};

}  // namespace thinwire::client::gpu

#endif  // THINWIRE_CLIENT_GPU_DEVICE_ULP_DELTA_H_
