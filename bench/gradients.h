// Input arrays for codec benchmarks: 128 shards of 256 Ki values. The shards together are larger
// than the caches, so each call reads its shard from memory.
#ifndef THINWIRE_BENCH_GRADIENTS_H_
#define THINWIRE_BENCH_GRADIENTS_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/fastest.h"
#include "common/memory/float_array.h"

namespace thinwire {

inline constexpr size_t kShardValues = 256 * 1024;
inline constexpr size_t kShards = 128;

using Floats = FloatArray;

// Returns kShards arrays of approximately normal values. Each value is the sum of four uniform
// draws, which is cheaper than an exact normal distribution.
inline std::vector<Floats> Gradients() {
  std::vector<Floats> shards(kShards, Floats(kShardValues));
  uint64_t state = 1;
  for (Floats& shard : shards) {
    for (float& value : shard) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      int sum = -2 * 0xFFFF;
      for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int>(state >> shift & 0xFFFF);
      value = static_cast<float>(sum) * 1e-6f;
    }
  }
  return shards;
}

// Measures CALL(shard, partner), whose arguments are two shard indices. Successive calls use
// successive values of SHARD. In each pass over all shards, a given SHARD has another PARTNER than
// in the pass before. A CALL that adds the sparse entries of PARTNER to SHARD therefore accesses
// values of SHARD that the pass before did not load into a cache.
template <typename Call>
void MeasurePairs(benchmark::State& state, const Call& call) {
  size_t shard = 0, partner = 0;
  MeasureFastest(state, [&] {
    call(shard, partner);
    shard = (shard + 1) % kShards;
    partner = (partner + (shard == 0 ? 2 : 1)) % kShards;
  });
}

// Measures CALL(shard), where SHARD is the number of a shard. Successive calls use successive
// shards.
template <typename Call>
void MeasureEachShard(benchmark::State& state, const Call& call) {
  MeasurePairs(state, [&](size_t shard, size_t) { call(shard); });
}

// Measures whole passes of CALL(shard) over all shards. Stores the time of the fastest pass,
// divided by the number of shards, in the counter kFastest. Use MeasureTurns() if the time of a
// call depends on the shard's values, because the fastest single call would measure only the most
// favourable shard.
template <typename Call>
void MeasureTurns(benchmark::State& state, const Call& call) {
  MeasureFastest(state, [&] {
    for (size_t shard = 0; shard < kShards; ++shard) call(shard);
  });
  state.counters[kFastest] = state.counters[kFastest] / kShards;
}

}  // namespace thinwire

#endif  // THINWIRE_BENCH_GRADIENTS_H_
