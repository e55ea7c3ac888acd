// Converts arrays of floats to codes of a number format and back. C encodes and D decodes one value
// (number_format.h). Every function is elementwise:
//
//   Encode           codes = C(values / unit)
//   EncodeFeedback   v = residual + gradient;  codes = C(v / unit);  residual = v - unit * D(codes)
//   Decode           out = unit * D(codes)
//   DecodeScaled     out = scale * (unit * D(codes))
//   DecodeAdd        sum += scale * (unit * D(codes))
//
// `unit` is a power of two with a finite reciprocal; it is 1 if the format is not scaled. Codes are
// little-endian, and the array of codes need not be aligned. Every product and sum is rounded
// separately, so the vector code computes the same bits as the scalar formulas on every machine,
// except for the bits of NaNs. Uses Highway vector instructions. Pure functions; thread-safe.
#ifndef THINWIRE_KERNELS_CONVERT_H_
#define THINWIRE_KERNELS_CONVERT_H_

#include <cstddef>
#include <span>

#include "kernels/number_format.h"

namespace thinwire::kernels {

// REQUIRES, for all functions: CODES points to as many codes as there are values.
template <typename Format>
void Encode(std::span<const float> values, float unit, std::byte* codes);

// A faster Encode() for values that do not saturate. Only for Fp8E4m3, whose callers choose a unit
// that prevents saturation. REQUIRES: no magnitude exceeds unit times the format's largest finite
// value; no value is a NaN.
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
