// The sample of a shard's magnitudes that table_N and lloyd_N fit their tables to, on the host and
// on a GPU. The shard is split into equal parts, and one magnitude of each part is drawn at random.
// Pure functions: thread-safe.
#ifndef THINWIRE_COMMON_CODEC_CODEBOOK_FITTED_TABLE_H_
#define THINWIRE_COMMON_CODEC_CODEBOOK_FITTED_TABLE_H_

#include <algorithm>
#include <cstddef>

namespace thinwire {

inline constexpr int kLloydIterations = 8;

// Returns the sample size: the number of values that are drawn from a shard of COUNT values to fit
// its table, which has ENTRY_COUNT magnitudes.
constexpr size_t TableSampleCount(size_t count, size_t entry_count) {
  constexpr size_t kMin = 4096, kPerEntry = 128;
  return std::min(count, std::max(kMin, kPerEntry * entry_count));
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_CODEC_CODEBOOK_FITTED_TABLE_H_
