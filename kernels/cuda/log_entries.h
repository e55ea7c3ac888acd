// LogEntries: the 8 magnitudes of log_4, in even ratios from the largest of some values to the
// smallest, but no further down than 1/256 of the largest: what common/codec/log4.cc finds, to the
// bit.
//
//   entry c = a r^(7-c),  r = 1 - b / 256;   head = a (the upper 2 bytes of the float) | b (1)
//
// Thread-safe.
#ifndef THINWIRE_KERNELS_CUDA_LOG_ENTRIES_H_
#define THINWIRE_KERNELS_CUDA_LOG_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"

namespace thinwire::kernels::cuda {

// REQUIRES: all on the device; finite values; HEAD has 3 bytes, WORDS are to work in.
Status LogEntries(std::span<const float> values, std::span<uint32_t, 2> words, std::byte* head,
                  std::span<float, 8> entries, const Stream& stream);

}  // namespace thinwire::kernels::cuda

#endif  // THINWIRE_KERNELS_CUDA_LOG_ENTRIES_H_
