#include "kernels/cuda/golomb_rice.h"

#include "kernels/cuda/block_scan.h"
#include "kernels/cuda/in_order.h"
#include "kernels/cuda/index_bytes.h"
#include "kernels/cuda/launch.h"

namespace thinwire::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr size_t kMine = 8;  // neighbours that one thread sums up
constexpr size_t kTile = kThreads * kMine;
constexpr unsigned kScanThreads = 1024;

constexpr size_t Tiles(size_t count) { return (count + kTile - 1) / kTile; }

struct Shape {
  int low_bits;
  size_t low_bytes;
  size_t most_bytes;
};

// REQUIRES: count > 0.
constexpr Shape ShapeOf(size_t count, size_t universe) {
  const size_t least = universe * 481 / (count * 1000);
  const int low_bits = least <= 1 ? 0 : std::bit_width(least - 1);
  const size_t low_bytes = (count * static_cast<size_t>(low_bits) + 7) / 8;
  return {low_bits, low_bytes, low_bytes + (count + ((universe - count) >> low_bits) + 7) / 8};
}

struct Gaps {
  __device__ uint32_t operator()(size_t i) const {
    return i == 0 ? indices[0] : indices[i] - indices[i - 1] - 1;
  }
  const uint32_t* indices;
};

struct Places {
  __device__ size_t operator()(size_t i) const { return places[i]; }
  const uint32_t* places;
};

// Of the calling thread's numbers the sum of what is above the low bits.
__device__ uint32_t MySum(const Gaps& gaps, size_t count, int low_bits, size_t first) {
  uint32_t sum = 0;
  for (size_t i = first; i < first + kMine && i < count; ++i) sum += gaps(i) >> low_bits;
  return sum;
}

__device__ size_t MyFirst() { return blockIdx.x * kTile + threadIdx.x * kMine; }

__global__ void TotalsKernel(Gaps gaps, size_t count, int low_bits, uint32_t* totals) {
  uint32_t total;
  SumBefore<kThreads>(MySum(gaps, count, low_bits, MyFirst()), total);
  if (threadIdx.x == 0) totals[blockIdx.x] = total;
}

// The totals of the tiles become what is before each.
__global__ void SumTotalsKernel(uint32_t* totals, size_t count) {
  uint32_t before = 0;
  for (size_t first = 0; first < count; first += kScanThreads) {
    const size_t i = first + threadIdx.x;
    uint32_t total;
    const uint32_t mine = SumBefore<kScanThreads>(i < count ? totals[i] : 0, total);
    if (i < count) totals[i] = before + mine;
    before += total;
  }
}

// Where each one's bit of the upper part is; the last one's tells the length.
__global__ void PlacesKernel(Gaps gaps, size_t count, Shape shape, const uint32_t* before,
                             uint32_t* places, GolombRiceCode code) {
  const size_t first = MyFirst();
  uint32_t total;
  uint32_t sum =
      before[blockIdx.x] + SumBefore<kThreads>(MySum(gaps, count, shape.low_bits, first), total);
  for (size_t i = first; i < first + kMine && i < count; ++i) {
    sum += gaps(i) >> shape.low_bits;
    places[i] = sum + static_cast<uint32_t>(i);
    if (i + 1 == count) {
      *code.size = code.before + static_cast<uint32_t>(shape.low_bytes) + places[i] / 8 + 1;
    }
  }
}

__global__ void PackKernel(Gaps gaps, Places places, size_t count, Shape shape, std::byte* out) {
  const size_t byte = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (byte >= shape.low_bytes + places(count - 1) / 8 + 1) return;
  const uint32_t bits = byte < shape.low_bytes
                            ? LowByte(gaps, count, static_cast<size_t>(shape.low_bits), byte)
                            : UpperByte(places, count, byte - shape.low_bytes);
  out[byte] = static_cast<std::byte>(bits);
}

__global__ void EmptyKernel(GolombRiceCode code) { *code.size = code.before; }

}  // namespace

size_t GolombRiceWords(size_t count) { return count + Tiles(count); }

Status EncodeGolombRice(std::span<const uint32_t> indices, size_t universe,
                        std::span<uint32_t> words, const GolombRiceCode& code,
                        const Stream& stream) {
  const size_t count = indices.size();
  if (count == 0) return Launch("pack no index", EmptyKernel, {1, 1}, stream, code);
  const Shape shape = ShapeOf(count, universe);
  const Gaps gaps = {indices.data()};
  uint32_t* const places = words.data();
  uint32_t* const totals = places + count;
  const Grid tiles = {Tiles(count), kThreads};
  return InOrder(
      [&] {
        return Launch("sum up gaps", TotalsKernel, tiles, stream, gaps, count, shape.low_bits,
                      totals);
      },
      [&] {
        return Launch("sum up tiles", SumTotalsKernel, {1, kScanThreads}, stream, totals,
                      Tiles(count));
      },
      [&] {
        return Launch("place gaps", PlacesKernel, tiles, stream, gaps, count, shape, totals, places,
                      code);
      },
      [&] {
        return Launch("pack gaps", PackKernel, OneThreadEach(shape.most_bytes), stream, gaps,
                      Places{places}, count, shape, code.out);
      });
}

}  // namespace thinwire::kernels::cuda
