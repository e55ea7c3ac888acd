// The arrays that benchmarks of codecs run over: 128 shards of 256 Ki values, so that each call
// finds its own in memory and not in a cache.
#ifndef THINWIRE_BENCH_GRADIENTS_H_
#define THINWIRE_BENCH_GRADIENTS_H_

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/fastest.h"
#include "common/float_array.h"

namespace thinwire {

inline constexpr size_t kShardValues = 256 * 1024;
inline constexpr size_t kShards = 128;

using Floats = FloatArray;

// Nearly normal, cheaply: the sum of four uniform draws.
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

// Calls CALL with the number of each shard in turn, and that of a partner, another one each time
// round: what a sparse payload touched of a shard is in no cache when a partner touches it.
template <typename Call>
void MeasurePairs(benchmark::State& state, const Call& call) {
  size_t shard = 0, partner = 0;
  MeasureFastest(state, [&] {
    call(shard, partner);
    shard = (shard + 1) % kShards;
    partner = (partner + (shard == 0 ? 2 : 1)) % kShards;
  });
}

// Calls CALL with the number of each shard in turn.
template <typename Call>
void MeasureEachShard(benchmark::State& state, const Call& call) {
  MeasurePairs(state, [&](size_t shard, size_t) { call(shard); });
}

// The same for what may be lucky or not with a shard: the fastest turn through all of them counts,
// and what is kept is a shard's part of it.
template <typename Call>
void MeasureTurns(benchmark::State& state, const Call& call) {
  MeasureFastest(state, [&] {
    for (size_t shard = 0; shard < kShards; ++shard) call(shard);
  });
  state.counters[kFastest] = state.counters[kFastest] / kShards;
}

}  // namespace thinwire

#endif  // THINWIRE_BENCH_GRADIENTS_H_
