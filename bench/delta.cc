// Measures the publication of deltas on a server and their application on a worker, in comparison
// with memcpy of the shard's floats. The data is 64 shards of 256 Ki values. Successive calls use
// successive shards, so each call reads its data from memory and not from a cache. Before each
// publication, some of the shard's masters (the server's exact parameters) change.
//
//   publish.exact_thousandth   0.1 % of the masters changed; publishes an ulp delta
//   publish.exact_hundredth    1 % of the masters changed; publishes an ulp delta
//   publish.exact_dense        all masters changed; publishes the whole shard
//   publish.fp8_e5m2           all masters changed; publishes a delta encoded with fp8_e5m2
//   publish.topk               all masters changed; publishes a delta encoded with topk, 0.1 %
//   apply.exact_hundredth      applies a delta of publish.exact_hundredth
//   apply.fp8_e5m2             applies a delta of publish.fp8_e5m2
//   hash                       computes the hash of a shard's values
//
// Below google-benchmark's table the program prints one line per benchmark:
//
//   ratio delta.publish.exact_thousandth 1.0
//       time of the benchmark's fastest call / time of the fastest memcpy of a shard's floats. A
//       publication compares the masters with the published values. This comparison reads as many
//       bytes as memcpy moves
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "bench/fastest.h"
#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/memory/huge_page_arena.h"
#include "common/model/value_hash.h"
#include "server/core/publish/delta_publisher.h"

namespace thinwire {
namespace {

constexpr size_t kShardValues = 256 * 1024;
constexpr size_t kShards = 64;

using Floats = std::vector<float>;

struct Setting {
  std::string name;
  std::optional<CodecSpec> codec;
  size_t every;  // distance from one changed master to the next, in values
};

const std::vector<Setting> kSettings = {
    {"exact_thousandth", std::nullopt, 1000},
    {"exact_hundredth", std::nullopt, 100},
    {"exact_dense", std::nullopt, 1},
    {"fp8_e5m2", CodecSpec{.id = CodecId::kFp8E5m2}, 1},
    {"topk", CodecSpec{.id = CodecId::kTopK, .density = 0.001}, 1},
};

// The masters and the DeltaPublisher of every shard.
struct Shards {
  explicit Shards(const Setting& setting) : every(setting.every) {
    for (size_t i = 0; i < kShards; ++i) {
      publishers.emplace_back(PublishOptions{.codec = setting.codec});
      publishers.back().Start(Version{0}, masters[i]);
    }
  }

  void Change(size_t shard, uint64_t version) {
    Floats& values = masters[shard];
    uint64_t draw = version;
    for (size_t i = version % every; i < values.size(); i += every) {
      draw = draw * 6364136223846793005u + 1442695040888963407u;
      values[i] += 1e-12f * static_cast<float>(static_cast<int64_t>(draw) >> 32);
    }
  }

  const size_t every;
  std::vector<Floats> masters{kShards, Floats(kShardValues, 0.5f)};
  std::vector<DeltaPublisher> publishers;
};

// Measures DeltaPublisher::Publish(). The measured time excludes the changes of the masters before
// each call.
void MeasurePublish(benchmark::State& state, const Setting& setting) {
  using Clock = std::chrono::steady_clock;
  Shards shards(setting);
  auto fastest = Clock::duration::max();
  uint64_t call = 0;
  for (auto _ : state) {
    const size_t shard = call % kShards;
    const Version version{1 + call++ / kShards};
    shards.Change(shard, version.value);
    const auto start = Clock::now();
    shards.publishers[shard].Publish(version, shards.masters[shard]);
    fastest = std::min(fastest, Clock::now() - start);
  }
  state.counters[kFastest] = std::chrono::duration<double, std::micro>(fastest).count();
}

void MeasureApply(benchmark::State& state, const Setting& setting) {
  Shards shards(setting);
  for (size_t i = 0; i < kShards; ++i) {
    shards.Change(i, 1);
    shards.publishers[i].Publish(Version{1}, shards.masters[i]);
  }
  // A worker checks each delta before it applies the delta. This loop checks all deltas before the
  // measurement, so the measured time excludes the checks.
  std::vector<CheckedPayload> payloads;
  std::vector<UlpDelta> ulp_deltas;
  for (DeltaPublisher& publisher : shards.publishers) {
    const auto delta = publisher.DeltasSince(Version{0})[0];
    if (delta->kind == PublishedDelta::Kind::kUlpDelta) {
      ulp_deltas.push_back(UlpDelta::Check(delta->payload, kShardValues).value());
    } else {
      payloads.push_back(CheckPayload(delta->payload, kShardValues).value());
    }
  }
  std::vector<Floats> replicas(kShards, Floats(kShardValues, 0.5f));
  size_t shard = 0;
  MeasureFastest(state, [&] {
    if (ulp_deltas.empty()) {
      DecodePayloadAdd(payloads[shard], 1.0f, replicas[shard]);
    } else {
      ulp_deltas[shard].Apply(replicas[shard]);
    }
    shard = (shard + 1) % kShards;
  });
}

void MeasureMemcpy(benchmark::State& state) {
  const std::vector<Floats> from(kShards, Floats(kShardValues, 1));
  std::vector<Floats> to(kShards, Floats(kShardValues));
  size_t shard = 0;
  MeasureFastest(state, [&] {
    std::memcpy(to[shard].data(), from[shard].data(), kShardValues * sizeof(float));
    shard = (shard + 1) % kShards;
  });
}

void MeasureHash(benchmark::State& state) {
  const std::vector<Floats> shards(kShards, Floats(kShardValues, 1));
  size_t shard = 0;
  MeasureFastest(state, [&] {
    benchmark::DoNotOptimize(HashValues(shards[shard]));
    shard = (shard + 1) % kShards;
  });
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::HugePageArena arena;
  std::pmr::set_default_resource(&arena);  // `arena` provides the memory of all measured arrays
  using namespace thinwire;
  std::vector<std::string> names = {"hash"};
  benchmark::RegisterBenchmark("memcpy", MeasureMemcpy);
  benchmark::RegisterBenchmark("hash", MeasureHash);
  for (const Setting& setting : kSettings) {
    names.push_back("publish." + setting.name);
    benchmark::RegisterBenchmark(names.back().c_str(), MeasurePublish, setting);
  }
  for (const Setting& setting : {kSettings[1], kSettings[3]}) {
    names.push_back("apply." + setting.name);
    benchmark::RegisterBenchmark(names.back().c_str(), MeasureApply, setting);
  }
  if (!InitializeBenchmarks(argc, argv)) return 1;
  FastestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  for (const std::string& name : names) reporter.PrintRatio("delta." + name, name, "memcpy");
  return 0;
}
