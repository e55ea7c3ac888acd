// Converts arrays of floats to codes of a number format and back. With C and D the format's
// encoding and decoding (number_format.h), elementwise:
//
//   Encode           codes = C(values / unit)
//   EncodeFeedback   v = residual + gradient;  codes = C(v / unit);  residual = v - unit * D(codes)
//   Decode           out = unit * D(codes)
//   DecodeScaled     out = scale * (unit * D(codes))
//   DecodeAdd        sum += scale * (unit * D(codes))
//
// `unit` is a power of two with a finite reciprocal, and 1 if the format is not scaled. Codes are
// little-endian and may have any address. Every product and sum is rounded separately, so vector
// code has the bits of the scalar formulas on every machine, except that a NaN may have other bits.
// Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_CONVERT_H_
#define THINWIRE_KERNELS_CONVERT_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

// REQUIRES, for all functions: CODES points to as many codes as there are values.
template <typename Format>
void Encode(std::span<const float> values, float unit, std::byte* codes);

// Does the same as Encode(), but faster, for values that do not saturate. Only for Fp8E4m3, whose
// unit is chosen accordingly. REQUIRES: no magnitude exceeds unit times the format's largest; no
// value is a NaN.
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
