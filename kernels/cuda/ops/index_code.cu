#include "kernels/cuda/ops/index_code.h"

#include "kernels/cuda/block/block_scan.h"
#include "kernels/cuda/block/launch.h"
#include "kernels/cuda/runtime/runtime.h"

namespace thinwire::kernels::cuda {
namespace {

// Returns byte BYTE of a bit array that concatenates the lowest LOW_BITS bits of COUNT numbers (the
// low part of a code). NUMBER(i) returns the i-th number.
template <typename Number>
__device__ uint32_t LowByte(const Number& number, size_t count, size_t low_bits, size_t byte) {
  const size_t begin = 8 * byte;
  uint32_t bits = 0;
  for (size_t i = begin / low_bits; i < count && i * low_bits < begin + 8; ++i) {
    const uint64_t low = number(i) & ((uint64_t{1} << low_bits) - 1);
    const size_t at = i * low_bits;  // bit at which number i begins; may be less than BEGIN
    bits |= static_cast<uint32_t>(at >= begin ? low << (at - begin) : low >> (begin - at));
  }
  return bits & 0xFF;
}

// Returns byte BYTE of a bit array in which bit POSITION(i) is set for each i < COUNT (the upper
// part of a code). The positions are in ascending order, so a binary search finds the first bit
// that lies in the byte.
template <typename Position>
__device__ uint32_t UpperByte(const Position& position, size_t count, size_t byte) {
  const size_t begin = 8 * byte;
  size_t first = 0;
  for (size_t end = count; first < end;) {
    const size_t middle = (first + end) / 2;
    if (position(middle) < begin) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  uint32_t bits = 0;
  for (size_t i = first; i < count; ++i) {
    const size_t bit = position(i) - begin;
    if (bit >= 8) break;
    bits |= 1u << bit;
  }
  return bits;
}

struct Indices {
  __device__ uint64_t operator()(size_t i) const { return indices[i]; }
  const uint32_t* indices;
};

struct EliasFanoPositions {
  __device__ size_t operator()(size_t i) const { return (indices[i] >> low_bits) + i; }
  const uint32_t* indices;
  int low_bits;
};

__global__ void EliasFanoKernel(const uint32_t* indices, size_t count, EliasFanoShape shape,
                                std::byte* out) {
  const size_t byte = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (byte >= shape.low_bytes + shape.upper_bytes) return;
  const uint32_t bits =
      byte < shape.low_bytes
          ? LowByte(Indices{indices}, count, static_cast<size_t>(shape.low_bits), byte)
          : UpperByte(EliasFanoPositions{indices, shape.low_bits}, count, byte - shape.low_bytes);
  out[byte] = static_cast<std::byte>(bits);
}

constexpr unsigned kThreads = 256;
constexpr size_t kGapsPerThread = 8;
constexpr size_t kGapTile = kThreads * kGapsPerThread;
constexpr unsigned kScanThreads = 1024;

constexpr size_t GapTiles(size_t count) { return (count + kGapTile - 1) / kGapTile; }

struct GolombRiceShape {
  int low_bits;
  size_t low_bytes;
  size_t max_bytes;
};

// REQUIRES: count > 0.
constexpr GolombRiceShape ShapeOfGolombRice(size_t count, size_t universe) {
  const size_t least = universe * 481 / (count * 1000);
  const int low_bits = least <= 1 ? 0 : std::bit_width(least - 1);
  const size_t low_bytes = (count * static_cast<size_t>(low_bits) + 7) / 8;
  return {low_bits, low_bytes, low_bytes + (count + ((universe - count) >> low_bits) + 7) / 8};
}

// Gap i is the number of omitted indices between indices[i - 1] and indices[i]; gap 0 is
// indices[0].
struct Gaps {
  __device__ uint32_t operator()(size_t i) const {
    return i == 0 ? indices[0] : indices[i] - indices[i - 1] - 1;
  }
  const uint32_t* indices;
};

struct GolombRicePositions {
  __device__ size_t operator()(size_t i) const { return positions[i]; }
  const uint32_t* positions;
};

__device__ size_t FirstGapOfThread() {
  return blockIdx.x * kGapTile + threadIdx.x * kGapsPerThread;
}

// Returns the sum of gaps(i) >> low_bits over all i that the calling thread handles.
__device__ uint32_t ThreadSum(const Gaps& gaps, size_t count, int low_bits) {
  const size_t first = FirstGapOfThread();
  uint32_t sum = 0;
  for (size_t i = first; i < first + kGapsPerThread && i < count; ++i) sum += gaps(i) >> low_bits;
  return sum;
}

__global__ void TileSumKernel(Gaps gaps, size_t count, int low_bits, uint32_t* tile_sums) {
  uint32_t total;
  BlockExclusiveSum<kThreads>(ThreadSum(gaps, count, low_bits), total);
  if (threadIdx.x == 0) tile_sums[blockIdx.x] = total;
}

// Replaces the sum of each tile by the sum of all previous tiles. Runs in one block.
__global__ void ScanTilesKernel(uint32_t* tile_sums, size_t count) {
  uint32_t before = 0;
  for (size_t first = 0; first < count; first += kScanThreads) {
    const size_t i = first + threadIdx.x;
    uint32_t total;
    const uint32_t mine = BlockExclusiveSum<kScanThreads>(i < count ? tile_sums[i] : 0, total);
    if (i < count) tile_sums[i] = before + mine;
    before += total;
  }
}

// Computes the position of each gap's bit in the upper part of the code (see index_code.h). The
// last position determines the length of the code.
__global__ void PositionKernel(Gaps gaps, size_t count, GolombRiceShape shape,
                               const uint32_t* before_tile, uint32_t* positions,
                               GolombRiceCode code) {
  const size_t first = FirstGapOfThread();
  uint32_t total;
  uint32_t sum = before_tile[blockIdx.x] +
                 BlockExclusiveSum<kThreads>(ThreadSum(gaps, count, shape.low_bits), total);
  for (size_t i = first; i < first + kGapsPerThread && i < count; ++i) {
    sum += gaps(i) >> shape.low_bits;
    positions[i] = sum + static_cast<uint32_t>(i);
    if (i + 1 == count) {
      *code.size = code.before + static_cast<uint32_t>(shape.low_bytes) + positions[i] / 8 + 1;
    }
  }
}

__global__ void PackGapsKernel(Gaps gaps, GolombRicePositions positions, size_t count,
                               GolombRiceShape shape, std::byte* out) {
  const size_t byte = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (byte >= shape.low_bytes + positions(count - 1) / 8 + 1) return;
  const uint32_t bits = byte < shape.low_bytes
                            ? LowByte(gaps, count, static_cast<size_t>(shape.low_bits), byte)
                            : UpperByte(positions, count, byte - shape.low_bytes);
  out[byte] = static_cast<std::byte>(bits);
}

__global__ void EmptyCodeKernel(GolombRiceCode code) { *code.size = code.before; }

}  // namespace

Status EncodeEliasFano(std::span<const uint32_t> indices, size_t universe, std::byte* out,
                       const Stream& stream) {
  const EliasFanoShape shape = ShapeOfEliasFano(indices.size(), universe);
  return Launch("Elias-Fano encode", EliasFanoKernel, OneThreadPerItem(shape.bytes()), stream,
                indices.data(), indices.size(), shape, out);
}

size_t GolombRiceWords(size_t count) { return count + GapTiles(count); }

Status EncodeGolombRice(std::span<const uint32_t> indices, size_t universe,
                        std::span<uint32_t> words, const GolombRiceCode& code,
                        const Stream& stream) {
  const size_t count = indices.size();
  if (count == 0) return Launch("Golomb-Rice: no indices", EmptyCodeKernel, {1, 1}, stream, code);
  const GolombRiceShape shape = ShapeOfGolombRice(count, universe);
  const Gaps gaps = {indices.data()};
  uint32_t* const positions = words.data();
  uint32_t* const tile_sums = positions + count;
  const Grid tiles = {GapTiles(count), kThreads};
  RETURN_IF_CUDA_ERROR(Launch("Golomb-Rice: sum tiles", TileSumKernel, tiles, stream, gaps, count,
                              shape.low_bits, tile_sums));
  RETURN_IF_CUDA_ERROR(Launch("Golomb-Rice: scan tiles", ScanTilesKernel, {1, kScanThreads}, stream,
                              tile_sums, GapTiles(count)));
  RETURN_IF_CUDA_ERROR(Launch("Golomb-Rice: compute positions", PositionKernel, tiles, stream, gaps,
                              count, shape, tile_sums, positions, code));
  return Launch("Golomb-Rice: pack", PackGapsKernel, OneThreadPerItem(shape.max_bytes), stream,
                gaps, GolombRicePositions{positions}, count, shape, code.out);
}

}  // namespace thinwire::kernels::cuda
