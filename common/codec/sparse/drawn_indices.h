// DrawnIndices: k ascending pseudo-random indices below n, which one number, the draw, determines.
//
//   index i = begin + MixBits(draw + i) mod (end - begin),  begin = i n / k,  end = (i + 1) n / k
//
// The range 0 to n - 1 is split into k nearly equal parts, and one index of each part is drawn. All
// indices are about equally likely, no index is drawn twice, and each index can be computed
// independently. Not thread-safe.
#ifndef THINWIRE_COMMON_CODEC_SPARSE_DRAWN_INDICES_H_
#define THINWIRE_COMMON_CODEC_SPARSE_DRAWN_INDICES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/mix_bits.h"

namespace thinwire {

class DrawnIndices {
 public:
  // REQUIRES: count <= universe < 2^32.
  DrawnIndices(uint64_t draw, size_t count, size_t universe)
      : draw_(draw), count_(count), universe_(universe) {}

  // Fills OUT with the next indices and returns the number of elements of OUT. REQUIRES: at least
  // that many indices have not been returned yet.
  size_t Next(std::span<uint32_t> out) {
    for (uint32_t& index : out) {
      const uint64_t begin = next_ * universe_ / count_, end = (next_ + 1) * universe_ / count_;
      index = static_cast<uint32_t>(begin + kernels::MixBits(draw_ + next_) % (end - begin));
      ++next_;
    }
    return out.size();
  }

 private:
  const uint64_t draw_;
  const uint64_t count_;
  const uint64_t universe_;
  uint64_t next_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_SPARSE_DRAWN_INDICES_H_
