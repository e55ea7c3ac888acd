// Arrays of floats to arrays of codes and back, for every number format, each in one pass.
//
//   Encode          codes = C(values / unit)
//   EncodeFeedback  v = residual + gradient;  codes = C(v / unit);  residual = v - unit * D(codes)
//   Decode          out = unit * D(codes)
//   DecodeScaled    out = scale * (unit * D(codes))
//   DecodeAdd       sum += scale * (unit * D(codes))
//
// `unit` is a power of two with a finite reciprocal; it must be 1 for a format that is not scaled.
// Codes are little-endian and may lie at any address. Every product and every sum is rounded on its
// own, on every machine, so the vector code equals the scalar formulas of number_format.h bit by
// bit (a NaN: as a class).
//
// Vectors: Highway, by the widest instructions of the machine that runs it. Pure functions:
// thread-safe.
#ifndef THINWIRE_KERNELS_CONVERT_H_
#define THINWIRE_KERNELS_CONVERT_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

// REQUIRES, for all: CODES points to as many codes as there are values.
template <typename Format>
void Encode(std::span<const float> values, float unit, std::byte* codes);

// The same, faster, of values that no code is too small for: of fp8_e4m3, whose unit is chosen so.
// REQUIRES: none is larger than unit times the format's largest, or a NaN.
template <typename Format>
void EncodeWithin(std::span<const float> values, float unit, std::byte* codes);

// REQUIRES: residual.size() == gradient.size().
template <typename Format>
void EncodeFeedback(std::span<const float> gradient, std::span<float> residual, float unit,
                    std::byte* codes);

template <typename Format>
void Decode(const std::byte* codes, float unit, std::span<float> out);

template <typename Format>
void DecodeScaled(const std::byte* codes, float unit, float scale, std::span<float> out);

template <typename Format>
void DecodeAdd(const std::byte* codes, float unit, float scale, std::span<float> sum);

}  // namespace thinwire::kernels

#endif  // THINWIRE_KERNELS_CONVERT_H_
