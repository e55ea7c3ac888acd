#include "client/gpu/device_moves.h"

#include <algorithm>
#include <cstdint>

#include "common/codec/moves.h"
#include "kernels/cuda/ops/ulp_delta.h"

namespace thinwire::client::gpu {

namespace cuda = kernels::cuda;

DeviceMoves::DeviceMoves(const ByteChain& payload, size_t count)
    : payload_(payload), count_(count), entry_count_(MoveCount(payload)) {}

size_t DeviceMoves::staged_bytes() const {
  return sizeof(uint32_t) * (MovesAll() ? count_ : 2 * entry_count_);
}

void DeviceMoves::Stage(std::span<std::byte> staged) const {
  auto* const words = reinterpret_cast<uint32_t*>(staged.data());
  if (MovesAll()) {
    std::fill_n(words, count_, 0u);
    ForEachMove(payload_, count_, [&](auto indices, auto moves) {
      for (size_t i = 0; i < indices.size(); ++i) words[indices[i]] = moves[i];
    });
    return;
  }
  uint32_t* next = words;
  ForEachMove(payload_, count_, [&](auto indices, auto moves) {
    std::ranges::copy(indices, next);
    std::ranges::copy(moves, next + entry_count_);
    next += indices.size();
  });
}

cuda::Status DeviceMoves::Apply(std::span<const std::byte> staged, std::span<float> values,
                                const cuda::Stream& stream) const {
  const std::span<const uint32_t> words = {reinterpret_cast<const uint32_t*>(staged.data()),
                                           staged.size() / sizeof(uint32_t)};
  if (MovesAll()) return cuda::AddUlps(words, values, stream);
  return cuda::AddUlpsAt(words.first(entry_count_), words.subspan(entry_count_), values, stream);
}

}  // namespace thinwire::client::gpu
