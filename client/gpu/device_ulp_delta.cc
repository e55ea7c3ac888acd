#include "client/gpu/device_ulp_delta.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/ops/ulp_delta.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

size_t DeviceUlpDelta::staged_bytes() const {
  return sizeof(uint32_t) * (StagesAll() ? delta_.count() : 2 * delta_.entry_count());
}

void DeviceUlpDelta::Stage(std::span<std::byte> staged) const {
  auto* const words = reinterpret_cast<uint32_t*>(staged.data());
  if (StagesAll()) {
    std::fill_n(words, delta_.count(), 0u);
    delta_.ForEachEntry([&](auto indices, auto differences) {
      for (size_t i = 0; i < indices.size(); ++i) words[indices[i]] = differences[i];
    });
    return;
  }
  uint32_t* next = words;
  delta_.ForEachEntry([&](auto indices, auto differences) {
    std::ranges::copy(indices, next);
    std::ranges::copy(differences, next + delta_.entry_count());
    next += indices.size();
  });
}

cuda::Status DeviceUlpDelta::Apply(std::span<const std::byte> staged, std::span<float> values,
                                   const cuda::Stream& stream) const {
  const std::span<const uint32_t> words = {reinterpret_cast<const uint32_t*>(staged.data()),
                                           staged.size() / sizeof(uint32_t)};
  if (StagesAll()) return cuda::AddUlps(words, values, stream);
  return cuda::AddUlpsAt(words.first(delta_.entry_count()), words.subspan(delta_.entry_count()),
                         values, stream);
}

}  // namespace thinwire::client::gpu
