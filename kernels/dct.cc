#include "kernels/dct.h"

#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dct.cc"
#include "hwy/foreach_target.h"
// foreach_target.h compiles this file once per instruction set. It must precede highway.h.
#include "hwy/highway.h"

#ifndef THINWIRE_KERNELS_DCT_TABLES_
#define THINWIRE_KERNELS_DCT_TABLES_
namespace thinwire::kernels {

inline constexpr size_t kHalf = kDctChunk / 2;

// Element m - 1 is sqrt(1/32) cos(pi m / 128), correctly rounded.
inline constexpr float kCosines[] = {
    0.17672345f,   0.176563755f,   0.176297709f,  0.175925463f,  0.175447255f,  0.174863353f,
    0.17417413f,   0.173379987f,   0.172481403f,  0.171478912f,  0.170373142f,  0.169164747f,
    0.167854458f,  0.16644305f,    0.164931387f,  0.163320377f,  0.161610976f,  0.15980424f,
    0.157901242f,  0.155903131f,   0.153811097f,  0.151626423f,  0.14935042f,   0.146984443f,
    0.144529939f,  0.141988367f,   0.139361277f,  0.136650234f,  0.133856878f,  0.130982891f,
    0.128030002f,  0.125f,         0.121894702f,  0.118715972f,  0.115465738f,  0.112145945f,
    0.108758606f,  0.105305754f,   0.101789467f,  0.0982118696f, 0.0945751145f, 0.0908813849f,
    0.0871329159f, 0.0833319575f,  0.0794808045f, 0.0755817741f, 0.0716372207f, 0.0676495135f,
    0.0636210516f, 0.0595542751f,  0.0554516204f, 0.0513155647f, 0.0471486002f, 0.0429532342f,
    0.0387319922f, 0.0344874226f,  0.0302220769f, 0.0259385277f, 0.0216393545f, 0.0173271466f,
    0.0130045004f, 0.00867402088f, 0.00433831709f};

// Returns B(k, i).
constexpr float BasisValue(size_t k, size_t i) {
  if (k == 0) return 0.125f;
  size_t m = k * (2 * i + 1) % 256;  // never a multiple of 64
  if (m > 128) m = 256 - m;
  return m < 64 ? kCosines[m - 1] : -kCosines[128 - m - 1];
}

// The rows of a table are contiguous for the loops that read them.
struct DctTables {
  std::array<std::array<std::array<float, kHalf>, kHalf>, 2> forward;  // [k % 2][i][k / 2]
  std::array<std::array<float, kHalf>, kDctChunk> inverse;             // [k][i]
};

constexpr DctTables MakeTables() {
  DctTables tables = {};
  for (size_t k = 0; k < kDctChunk; ++k) {
    for (size_t i = 0; i < kHalf; ++i) {
      tables.forward[k % 2][i][k / 2] = tables.inverse[k][i] = BasisValue(k, i);
    }
  }
  return tables;
}

alignas(64) inline constexpr DctTables kTables = MakeTables();

}  // namespace thinwire::kernels
#endif  // THINWIRE_KERNELS_DCT_TABLES_

HWY_BEFORE_NAMESPACE();
namespace thinwire::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using HalfChunk = std::array<float, kHalf>;

// Two vectors of each parity are summed at a time, so that additions do not wait for one another.
HWY_INLINE void DctOfChunk(const float* values, float* coefficients) {
  HalfChunk sums, differences;
  for (size_t i = 0; i < kHalf; ++i) {
    sums[i] = values[i] + values[kDctChunk - 1 - i];
    differences[i] = values[i] - values[kDctChunk - 1 - i];
  }
  HalfChunk even, odd;
  const hn::CappedTag<float, kHalf / 2> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t j = 0; j < kHalf; j += 2 * lanes) {
    auto even_0 = hn::Zero(d), even_1 = hn::Zero(d), odd_0 = hn::Zero(d), odd_1 = hn::Zero(d);
    for (size_t i = 0; i < kHalf; ++i) {
      const auto sum = hn::Set(d, sums[i]), difference = hn::Set(d, differences[i]);
      const float* const even_row = kTables.forward[0][i].data() + j;
      const float* const odd_row = kTables.forward[1][i].data() + j;
      even_0 = hn::Add(even_0, hn::Mul(sum, hn::LoadU(d, even_row)));
      even_1 = hn::Add(even_1, hn::Mul(sum, hn::LoadU(d, even_row + lanes)));
      odd_0 = hn::Add(odd_0, hn::Mul(difference, hn::LoadU(d, odd_row)));
      odd_1 = hn::Add(odd_1, hn::Mul(difference, hn::LoadU(d, odd_row + lanes)));
    }
    hn::StoreU(even_0, d, even.data() + j);
    hn::StoreU(even_1, d, even.data() + j + lanes);
    hn::StoreU(odd_0, d, odd.data() + j);
    hn::StoreU(odd_1, d, odd.data() + j + lanes);
  }
  for (size_t j = 0; j < kHalf; ++j) {
    coefficients[2 * j] = even[j];
    coefficients[2 * j + 1] = odd[j];
  }
}

HWY_INLINE void InverseDctOfChunk(const float* coefficients, float* values) {
  std::array<HalfChunk, 2> sums = {};
  const hn::CappedTag<float, kHalf> d;
  for (size_t k = 0; k < kDctChunk; ++k) {
    if (coefficients[k] == 0) continue;
    const auto coefficient = hn::Set(d, coefficients[k]);
    float* const sum = sums[k % 2].data();
    for (size_t i = 0; i < kHalf; i += hn::Lanes(d)) {
      const auto product = hn::Mul(coefficient, hn::LoadU(d, kTables.inverse[k].data() + i));
      hn::StoreU(hn::Add(hn::LoadU(d, sum + i), product), d, sum + i);
    }
  }
  for (size_t i = 0; i < kHalf; ++i) {
    values[i] = sums[0][i] + sums[1][i];
    values[kDctChunk - 1 - i] = sums[0][i] - sums[1][i];
  }
}

void DctAll(std::span<const float> values, std::span<float> coefficients) {
  for (size_t i = 0; i < values.size(); i += kDctChunk) {
    DctOfChunk(values.data() + i, coefficients.data() + i);
  }
}

void InverseDctAll(std::span<const float> coefficients, std::span<float> values) {
  for (size_t i = 0; i < values.size(); i += kDctChunk) {
    InverseDctOfChunk(coefficients.data() + i, values.data() + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace thinwire::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thinwire::kernels {

HWY_EXPORT(DctAll);
HWY_EXPORT(InverseDctAll);

void Dct(std::span<const float> values, std::span<float> coefficients) {
  HWY_DYNAMIC_DISPATCH(DctAll)(values, coefficients);
}

void InverseDct(std::span<const float> coefficients, std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(InverseDctAll)(coefficients, values);
}

}  // namespace thinwire::kernels
#endif  // HWY_ONCE
