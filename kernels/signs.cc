#include "kernels/signs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/signs.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"
#include "kernels/for_each_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A buffer for the bytes that Highway may read or write when it loads or stores a mask.
using MaskBytes = std::array<uint8_t, std::max<size_t>(8, hn::MaxLanes(hn::ScalableTag<float>()))>;

// Loads the sign bits of the values from index I on, one value per lane, and returns a mask of the
// lanes whose sign bit is set. BITS contains the sign bits of all values.
template <class D>
HWY_INLINE hn::Mask<D> LoadSigns(D d, const std::byte* bits, size_t i) {
  MaskBytes here = {};
  if (hn::Lanes(d) < 8) {
    here[0] = static_cast<uint8_t>(std::to_integer<unsigned>(bits[i / 8]) >> (i % 8));
  } else {
    std::memcpy(here.data(), bits + i / 8, hn::Lanes(d) / 8);
  }
  return hn::LoadMaskBits(d, here.data());
}

// Stores SIGNS as the sign bits of the values from index I on. REQUIRES: calls are in ascending
// order of I.
template <class D>
HWY_INLINE void StoreSigns(D d, hn::Mask<D> signs, std::byte* bits, size_t i) {
  MaskBytes here;
  hn::StoreMaskBits(d, signs, here.data());
  if (hn::Lanes(d) < 8) {
    const std::byte before = i % 8 == 0 ? std::byte{0} : bits[i / 8];
    bits[i / 8] = before | std::byte{here[0]} << (i % 8);
  } else {
    std::memcpy(bits + i / 8, here.data(), hn::Lanes(d) / 8);
  }
}

template <class D>
HWY_INLINE hn::Mask<D> SignsOf(D d, hn::Vec<D> values) {
  const hn::RebindToSigned<D> di;
  return hn::RebindMask(d, hn::Lt(hn::BitCast(di, values), hn::Zero(di)));
}

template <class D>
HWY_INLINE hn::Vec<D> Entries(D d, std::span<const float, 2> entries, hn::Mask<D> signs) {
  return hn::IfThenElse(signs, hn::Set(d, entries[1]), hn::Set(d, entries[0]));
}

void PutAll(std::span<const float> values, std::byte* bits) {
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    StoreSigns(d, SignsOf(d, hn::LoadU(d, values.data() + i)), bits, i);
  });
}

void TakeAll(std::span<const float, 2> entries, std::span<float> values, std::byte* bits) {
  ForEachVector(values.size(), [&](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, values.data() + i);
    const auto signs = SignsOf(d, value);
    StoreSigns(d, signs, bits, i);
    hn::StoreU(hn::Sub(value, Entries(d, entries, signs)), d, values.data() + i);
  });
}

void FromAll(const std::byte* bits, std::span<const float, 2> entries, std::span<float> out) {
  ForEachVector(out.size(), [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(Entries(d, entries, LoadSigns(d, bits, i)), d, out.data() + i);
  });
}

void AddAll(const std::byte* bits, std::span<const float, 2> entries, std::span<float> sum) {
  ForEachVector(sum.size(), [&](auto d, size_t i) HWY_ATTR {
    const auto added = Entries(d, entries, LoadSigns(d, bits, i));
    hn::StoreU(hn::Add(hn::LoadU(d, sum.data() + i), added), d, sum.data() + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(PutAll);
HWY_EXPORT(TakeAll);
HWY_EXPORT(FromAll);
HWY_EXPORT(AddAll);

void PackSigns(std::span<const float> values, std::byte* bits) {
  HWY_DYNAMIC_DISPATCH(PutAll)(values, bits);
}

void PackSignsSubtract(std::span<const float, 2> entries, std::span<float> values,
                       std::byte* bits) {
  HWY_DYNAMIC_DISPATCH(TakeAll)(entries, values, bits);
}

void UnpackSigns(const std::byte* bits, std::span<const float, 2> entries, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(FromAll)(bits, entries, out);
}

void UnpackSignsAdd(const std::byte* bits, std::span<const float, 2> entries,
                    std::span<float> sum) {
  HWY_DYNAMIC_DISPATCH(AddAll)(bits, entries, sum);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
