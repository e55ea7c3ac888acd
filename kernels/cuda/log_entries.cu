#include "kernels/cuda/log_entries.h"

#include <bit>
#include <cmath>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/for_all.h"
#include "kernels/cuda/in_order.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr int kEntries = 8;
constexpr float kSmallestPart = 1.0f / 256;
constexpr uint32_t kMostBits = 0x7FFFFFFF;

// Of the magnitudes, as integers, the largest; and of those above 0 the smallest, by what it lacks
// of kMostBits, so that both begin as 0 and rise.
struct ExtremesOp {
  template <int N>
  __device__ Few<float, N> Load(size_t i) const {
    return LoadFew<float, N>(values + i);
  }
  template <int N>
  __device__ void Store(size_t, const Few<float, N>& value) {
    for (int j = 0; j < N; ++j) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(value.at[j]) & kMostBits;
      const uint32_t lack = magnitude == 0 ? 0 : kMostBits - magnitude;
      if (magnitude > largest) largest = magnitude;
      if (lack > most_lack) most_lack = lack;
    }
  }
  bool aligned() const { return BeginsAt(values, kWidth * sizeof(float)); }

  const float* values;
  uint32_t largest = 0;
  uint32_t most_lack = 0;
};

__global__ void ExtremesKernel(ExtremesOp op, size_t count, bool aligned, uint32_t* words) {
  ForTile(op, count, aligned);
  const uint32_t largest = __reduce_max_sync(~0u, op.largest);
  const uint32_t most_lack = __reduce_max_sync(~0u, op.most_lack);
  if (threadIdx.x % 32 == 0) {
    atomicMax(&words[0], largest);
    atomicMax(&words[1], most_lack);
  }
}

__device__ float Eighth(float ratio) {
  const float fourth = ratio * ratio * (ratio * ratio);
  return fourth * fourth;
}

__device__ float RatioOf(int reduction) { return 1.0f - static_cast<float>(reduction) / 256.0f; }

// One thread: what it does hangs together.
__global__ void EntriesKernel(const uint32_t* words, std::byte* head, float* entries) {
  const float largest = std::bit_cast<float>(words[0]);
  const float found = words[1] == 0 ? largest : std::bit_cast<float>(kMostBits - words[1]);
  const float least = largest * kSmallestPart;
  const float smallest = found < least ? least : found;
  int reduction = 0;
  while (reduction < 255 && largest * Eighth(RatioOf(reduction)) > smallest) ++reduction;
  const float ratio = RatioOf(reduction);
  uint32_t bits = std::bit_cast<uint32_t>(largest * std::sqrt(ratio));
  if (bits < 0x7F7F8000) bits += 0x8000;  // rounds, but not to infinity
  head[0] = static_cast<std::byte>(bits >> 16);
  head[1] = static_cast<std::byte>(bits >> 24);
  head[2] = static_cast<std::byte>(reduction);
  float magnitude = std::bit_cast<float>(bits & 0xFFFF0000);
  for (int c = kEntries - 1; c >= 0; --c) {
    entries[c] = magnitude;
    magnitude *= ratio;
  }
}

}  // namespace

Status LogEntries(std::span<const float> values, std::span<uint32_t, 2> words, std::byte* head,
                  std::span<float, 8> entries, const Stream& stream) {
  const ExtremesOp op{values.data()};
  return InOrder([&] { return Clear(std::as_writable_bytes(words), stream); },
                 [&] {
                   return Launch("find extremes", ExtremesKernel, OneBlockATile(values.size()),
                                 stream, op, values.size(), op.aligned(), words.data());
                 },
                 [&] {
                   return Launch("fit even ratios", EntriesKernel, {1, 1}, stream, words.data(),
                                 head, entries.data());
                 });
}

}  // namespace thinwire::kernels::cuda
