// CompressLanes() moves chosen lanes of a vector to its front.
//
// Highway compiles a kernel once per instruction set. Each time, the kernel includes this header,
// before its own HWY_BEFORE_NAMESPACE.
#if defined(THINWIRE_KERNELS_COMPRESS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THINWIRE_KERNELS_COMPRESS_INL_H_
#undef THINWIRE_KERNELS_COMPRESS_INL_H_
#else
#define THINWIRE_KERNELS_COMPRESS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX2

// Row M lists the numbers of the bits that are set in M, ascending, and then those of the others.
struct LaneOrders {
  uint8_t rows[256][8];
};

constexpr LaneOrders MakeLaneOrders() {
  LaneOrders orders{};
  for (int mask = 0; mask < 256; ++mask) {
    int count = 0;
    for (const int wanted : {1, 0}) {
      for (int lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) == wanted) orders.rows[mask][count++] = static_cast<uint8_t>(lane);
      }
    }
  }
  return orders;
}

inline constexpr LaneOrders kLaneOrders = MakeLaneOrders();

#endif

// Returns V with the lanes for which MASK is true first, in their order. The other lanes follow in
// any order. D has lanes of 32 bits. Highway's Compress() does the same, but its version 1.0.3 for
// AVX2 has a table that GCC 12 copies to the stack in each call, which takes 100 cycles.
template <class D>
HWY_INLINE hn::Vec<D> CompressLanes(D d, hn::Vec<D> v, hn::Mask<D> mask) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (hn::MaxLanes(D()) == 8) {
    uint8_t bits[8];
    hn::StoreMaskBits(d, mask, bits);
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint8_t, D> bytes;
    const auto order = hn::PromoteTo(di, hn::LoadU(bytes, kLaneOrders.rows[bits[0]]));
    return hn::TableLookupLanes(v, hn::IndicesFromVec(d, order));
  }
#endif
  return hn::Compress(v, mask);
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
