// What the tables of table_N and lloyd_N are fitted to, on the host and on a GPU: a sample of the
// magnitudes, one drawn from each of as many equal parts. Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_TABLE_FIT_H_
#define THINWIRE_COMMON_CODEC_TABLE_FIT_H_

#include <algorithm>
#include <cstddef>

namespace thinwire {

// Of Lloyd's algorithm.
inline constexpr int kLloydIterations = 8;

// How many of COUNT values are looked at for ENTRY_COUNT entries.
constexpr size_t TableSampleCount(size_t count, size_t entry_count) {
  constexpr size_t kLeast = 4096, kPerEntry = 128;
  return std::min(count, std::max(kLeast, kPerEntry * entry_count));
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_TABLE_FIT_H_
