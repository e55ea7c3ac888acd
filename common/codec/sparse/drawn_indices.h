// DrawnIndices: k ascending indices below n that follow from one number, the draw.
//
//   index i = begin + MixBits(draw + i) mod (end - begin),  begin = i n / k,  end = (i + 1) n / k
//
// The n indices are split into k nearly equal parts, and one index is drawn from each. Thus every
// index is equally likely, none is drawn twice, and each can be computed without the others. Not
// thread-safe.
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

  // Fills OUT with the next indices and returns their number. REQUIRES: that many indices are left.
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
