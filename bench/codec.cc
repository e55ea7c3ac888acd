// Measures the speed of codecs in comparison with memcpy and with plain loops that read and write
// as many bytes as the codec. The data is 128 shards of 256 Ki values, 128 MiB of floats in all.
// Successive calls use successive shards, so each call reads its data from memory and not from a
// cache.
//
//   encode       Codec::Encode: reads n floats, writes a payload
//   decode_add   DecodePayloadAdd: reads a payload, reads and writes n floats (topk: k floats)
//   feedback     ErrorFeedback::Encode: reads n gradient values, reads and writes n residual
//                values, writes a payload
//
// Below google-benchmark's table the program prints the following lines, computed from the fastest
// call of each benchmark. Names with `hundredth` mean density 0.01. All other sparse benchmarks,
// except randomk, use density 0.001.
//
//   ratio codec.fp8_e5m2.encode 1.5
//       time of memcpy of n floats / time of the codec. A processor reads a cache line before it
//       writes to the line. The ratio is therefore at most 2.0 for fp8, 1.5 for 16 bits and 1.0 for
//       fp32; for decode_add it is at most 1.3, 1.2 and 1.0
//   ratio codec.fp8_e5m2.encode.loop 1.0
//       time of a plain loop that moves as many bytes as the codec / time of the codec; at most 1
//   ratio codec.onebit.feedback 3.5
//       time of encoding with error feedback / time of only adding the gradient to the residual;
//       at least 1
//   ratio codec.topk_ef.select 1.2
//       time of exact top-k with error feedback, including writing indices and values / time of
//       only adding the gradient to the residual; at least 1
//   ratio codec.topk_ef.nth_element 17
//       time of a selection with std::nth_element on the magnitudes / time of exact top-k with
//       error feedback, both measured over whole passes over all shards
//   ratio codec.topk_ef.nth_element.keys 11
//       the same ratio if std::nth_element also orders equal magnitudes, by index
//   ns codec.topk.scatter_add 2.4
//       time to add one entry to an array in memory
//   ns codec.topk.scatter_add.again 1.0
//       time to add one entry to the array to which the previous push was added
//   ns codec.elias_fano.decode 1.2
//       time to decode one index
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/fastest.h"
#include "bench/gradients.h"
#include "common/codec/error_feedback.h"
#include "common/codec/sparse/index_code.h"
#include "common/memory/huge_page_arena.h"
#include "kernels/sparse.h"

namespace thinwire {
namespace {

const std::vector<std::pair<std::string, CodecSpec>> kDensities = {
    {"", {.id = CodecId::kTopK, .density = 0.001}},
    {".hundredth", {.id = CodecId::kTopK, .density = 0.01}}};
// Number of timed passes in a benchmark that measures whole passes over all shards.
constexpr int kPasses = 8;
using Bytes = std::vector<std::byte>;

std::vector<Bytes> Payloads(const Codec& codec, const std::vector<Floats>& shards) {
  std::vector<Bytes> payloads;
  for (const Floats& shard : shards) {
    Bytes& payload = payloads.emplace_back(codec.MaxPayloadBytes(kShardValues));
    payload.resize(codec.Encode(shard, RandomKeys(), payload));
  }
  return payloads;
}

void MeasureMemcpy(benchmark::State& state) {
  const std::vector<Floats> from = Gradients();
  std::vector<Floats> to = from;
  MeasureEachShard(state, [&](size_t shard) {
    std::memcpy(to[shard].data(), from[shard].data(), kShardValues * sizeof(float));
  });
}

void MeasureEncode(benchmark::State& state, const CodecSpec& spec) {
  const auto codec = MakeCodec(spec).value();
  const std::vector<Floats> shards = Gradients();
  std::vector<Bytes> payloads(kShards, Bytes(codec->MaxPayloadBytes(kShardValues)));
  MeasureEachShard(
      state, [&](size_t shard) { codec->Encode(shards[shard], RandomKeys(), payloads[shard]); });
}

void MeasureDecodeAdd(benchmark::State& state, const CodecSpec& spec) {
  std::vector<Floats> sums = Gradients();
  std::vector<CheckedPayload> payloads;
  for (const Bytes& bytes : Payloads(*MakeCodec(spec).value(), sums)) {
    payloads.push_back(CheckPayload(ByteChain(bytes), kShardValues).value());
  }
  MeasurePairs(state, [&](size_t shard, size_t partner) {
    DecodePayloadAdd(payloads[partner], 0.5f, sums[shard]);
  });
}

struct Entries {
  std::vector<uint32_t> indices;
  Floats values;
};

std::vector<Entries> EntriesOf(const CodecSpec& spec, const std::vector<Floats>& shards) {
  std::vector<Entries> all;
  for (Bytes& bytes : Payloads(*MakeCodec(spec).value(), shards)) {
    Entries& entries = all.emplace_back();
    const CheckedPayload payload = CheckPayload(ByteChain(bytes), kShardValues).value();
    ForEachPayloadEntry(payload, [&](auto indices, auto values) {
      entries.indices.insert(entries.indices.end(), indices.begin(), indices.end());
      entries.values.insert(entries.values.end(), values.begin(), values.end());
    });
  }
  return all;
}

// Measures the addition of sparse entries to an array of sums. If AGAIN is false, successive calls
// add to the sums of different shards, which are in memory and not in a cache. If AGAIN is true,
// all calls add to the same array, as on a server that adds many pushes to one sum.
void MeasureScatterAdd(benchmark::State& state, const CodecSpec& spec, bool again) {
  std::vector<Floats> sums = Gradients();
  const std::vector<Entries> entries = EntriesOf(spec, sums);
  MeasurePairs(state, [&](size_t shard, size_t partner) {
    kernels::ScatterAdd(entries[partner].indices, entries[partner].values, 0.5f,
                        sums[again ? 0 : shard]);
  });
}

void MeasureEncodeIndices(benchmark::State& state, IndexCoder coder, const CodecSpec& spec) {
  const std::vector<Entries> entries = EntriesOf(spec, Gradients());
  Bytes code(MaxIndexBytes(coder, entries[0].indices.size(), kShardValues));
  MeasureEachShard(state, [&](size_t shard) {
    EncodeIndices(coder, entries[shard].indices, kShardValues, code.data());
  });
}

void MeasureDecodeIndices(benchmark::State& state, IndexCoder coder, const CodecSpec& spec) {
  const std::vector<Entries> all = EntriesOf(spec, Gradients());
  std::vector<Bytes> codes;
  for (const Entries& entries : all) {
    Bytes& code = codes.emplace_back(MaxIndexBytes(coder, entries.indices.size(), kShardValues));
    code.resize(EncodeIndices(coder, entries.indices, kShardValues, code.data()));
  }
  std::vector<uint32_t> indices(all[0].indices.size());
  MeasureEachShard(state, [&](size_t shard) {
    IndexReader(coder, codes[shard], indices.size(), kShardValues).Next(indices);
  });
}

void MeasureFeedback(benchmark::State& state, const CodecSpec& spec, bool whole_passes) {
  const auto codec = MakeCodec(spec).value();
  const std::vector<Floats> shards = Gradients();
  std::vector<ErrorFeedback> feedbacks;
  for (size_t i = 0; i < kShards; ++i) feedbacks.emplace_back(kShardValues, true);
  std::vector<Bytes> payloads(kShards, Bytes(codec->MaxPayloadBytes(kShardValues)));
  const auto encode = [&](size_t shard) {
    feedbacks[shard].Encode(*codec, shards[shard], RandomKeys(), payloads[shard]);
  };
  for (size_t shard = 0; shard < kShards; ++shard) encode(shard);  // allocates the residuals
  if (whole_passes) return MeasureTurns(state, encode);
  MeasureEachShard(state, encode);
}

template <typename Code>
void MeasureEncodeLoop(benchmark::State& state) {
  const std::vector<Floats> shards = Gradients();
  std::vector<std::vector<Code>> payloads(kShards, std::vector<Code>(kShardValues));
  MeasureEachShard(state, [&](size_t shard) {
    const float* const __restrict from = shards[shard].data();
    Code* const __restrict to = payloads[shard].data();
    for (size_t i = 0; i < kShardValues; ++i) {
      to[i] = static_cast<Code>(std::bit_cast<uint32_t>(from[i]) >> (32 - 8 * sizeof(Code)));
    }
  });
}

template <typename Code>
void MeasureDecodeAddLoop(benchmark::State& state) {
  std::vector<Floats> sums = Gradients();
  std::vector<std::vector<Code>> payloads(kShards, std::vector<Code>(kShardValues, Code{1}));
  MeasureEachShard(state, [&](size_t shard) {
    const Code* const __restrict from = payloads[shard].data();
    float* const __restrict sum = sums[shard].data();
    for (size_t i = 0; i < kShardValues; ++i) sum[i] += static_cast<float>(from[i]);
  });
}

void MeasureAddLoop(benchmark::State& state) {
  const std::vector<Floats> gradients = Gradients();
  std::vector<Floats> residuals = gradients;
  MeasureEachShard(state, [&](size_t shard) {
    const float* const __restrict from = gradients[shard].data();
    float* const __restrict sum = residuals[shard].data();
    for (size_t i = 0; i < kShardValues; ++i) sum[i] += from[i];
  });
}

size_t EntryCount(const CodecSpec& spec) {
  return static_cast<size_t>(std::llround(spec.density * kShardValues));
}

// Selects with the standard library: finds the k-th largest magnitude in a copy of the magnitudes,
// then collects every value of at least that magnitude. Ties may give more than k values; this
// benchmark ignores that.
void MeasureNthElement(benchmark::State& state, const CodecSpec& spec) {
  const std::vector<Floats> gradients = Gradients();
  std::vector<Floats> residuals = gradients;
  Floats magnitudes(kShardValues);
  const auto kth = magnitudes.begin() + static_cast<std::ptrdiff_t>(EntryCount(spec)) - 1;
  Entries entries;
  MeasureTurns(state, [&](size_t shard) {
    Floats& residual = residuals[shard];
    for (size_t i = 0; i < kShardValues; ++i) {
      residual[i] += gradients[shard][i];
      magnitudes[i] = std::fabs(residual[i]);
    }
    std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater());
    entries.indices.clear();
    entries.values.clear();
    for (uint32_t i = 0; i < kShardValues; ++i) {
      if (std::fabs(residual[i]) < *kth) continue;
      entries.indices.push_back(i);
      entries.values.push_back(std::exchange(residual[i], 0.0f));
    }
  });
}

// Selects with std::nth_element exactly the values that kernels/select/top_k.h selects. For each
// value it computes a 64-bit key from the magnitude (upper half) and the complement of the index
// (lower half). Among equal magnitudes, the lower index therefore has the larger key.
void MeasureNthElementOfKeys(benchmark::State& state, const CodecSpec& spec) {
  const std::vector<Floats> gradients = Gradients();
  std::vector<Floats> residuals = gradients;
  std::vector<uint64_t> keys(kShardValues);
  const auto end = keys.begin() + static_cast<std::ptrdiff_t>(EntryCount(spec));
  MeasureTurns(state, [&](size_t shard) {
    Floats& residual = residuals[shard];
    for (uint32_t i = 0; i < kShardValues; ++i) {
      residual[i] += gradients[shard][i];
      keys[i] = uint64_t{std::bit_cast<uint32_t>(residual[i]) << 1} << 32 | ~i;
    }
    std::nth_element(keys.begin(), end, keys.end(), std::greater());
    std::sort(keys.begin(), end, [](uint64_t a, uint64_t b) {
      return static_cast<uint32_t>(a) > static_cast<uint32_t>(b);
    });
    for (auto key = keys.begin(); key != end; ++key) residual[~static_cast<uint32_t>(*key)] = 0;
  });
}

// The codecs for which this file contains a plain loop that reads and writes as many bytes as the
// codec.
const std::vector<CodecId> kNumberFormats = {CodecId::kFp32, CodecId::kFp16, CodecId::kBf16,
                                             CodecId::kFp8E5m2, CodecId::kFp8E4m3};

std::string CodeBits(CodecId id) {
  if (id == CodecId::kFp32) return "32";
  return id == CodecId::kFp16 || id == CodecId::kBf16 ? "16" : "8";
}

// Returns (name, spec) of every dense codec with default settings, of randomk, of dct_topk, and of
// powersgd with two ranks. A shard is a matrix of 512 rows and 512 columns for powersgd.
std::vector<std::pair<std::string, CodecSpec>> Codecs() {
  std::vector<std::pair<std::string, CodecSpec>> codecs;
  for (const std::string_view name : DenseCodecNames()) {
    codecs.emplace_back("codec." + std::string(name), ParseCodec(name).value());
  }
  codecs.emplace_back("codec.randomk", CodecSpec{.id = CodecId::kRandomK, .density = 0.01});
  codecs.emplace_back("codec.dct_topk", CodecSpec{.id = CodecId::kDctTopK});
  codecs.emplace_back("codec.powersgd", CodecSpec{.id = CodecId::kPowerSgd});
  codecs.emplace_back("codec.powersgd_8", CodecSpec{.id = CodecId::kPowerSgd, .powersgd_rank = 8});
  return codecs;
}

const std::vector<IndexCoder> kIndexCoders = {IndexCoder::kEliasFano, IndexCoder::kGolombRice};

std::string NameOf(IndexCoder coder) {
  return "codec." + std::string(kIndexCoderNames[static_cast<size_t>(coder)]);
}

void Register() {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("memcpy", MeasureMemcpy);
  RegisterBenchmark("loop.encode.8", MeasureEncodeLoop<uint8_t>);
  RegisterBenchmark("loop.encode.16", MeasureEncodeLoop<uint16_t>);
  RegisterBenchmark("loop.encode.32", MeasureEncodeLoop<uint32_t>);
  RegisterBenchmark("loop.decode_add.8", MeasureDecodeAddLoop<uint8_t>);
  RegisterBenchmark("loop.decode_add.16", MeasureDecodeAddLoop<uint16_t>);
  RegisterBenchmark("loop.decode_add.32", MeasureDecodeAddLoop<float>);
  RegisterBenchmark("loop.add", MeasureAddLoop);
  for (const auto& [name, spec] : Codecs()) {
    RegisterBenchmark((name + ".encode").c_str(), MeasureEncode, spec);
    RegisterBenchmark((name + ".decode_add").c_str(), MeasureDecodeAdd, spec);
    RegisterBenchmark((name + ".feedback").c_str(), MeasureFeedback, spec, false);
  }
  for (const auto& [suffix, spec] : kDensities) {
    RegisterBenchmark(("codec.topk.encode" + suffix).c_str(), MeasureEncode, spec);
    RegisterBenchmark(("codec.topk.decode_add" + suffix).c_str(), MeasureDecodeAdd, spec);
    RegisterBenchmark(("codec.topk.scatter_add" + suffix).c_str(), MeasureScatterAdd, spec, false);
    RegisterBenchmark(("codec.topk.scatter_add.again" + suffix).c_str(), MeasureScatterAdd, spec,
                      true);
    for (const IndexCoder coder : kIndexCoders) {
      const std::string name = NameOf(coder);
      RegisterBenchmark((name + ".encode" + suffix).c_str(), MeasureEncodeIndices, coder, spec);
      RegisterBenchmark((name + ".decode" + suffix).c_str(), MeasureDecodeIndices, coder, spec);
    }
    RegisterBenchmark(("codec.topk_ef.select" + suffix).c_str(), MeasureFeedback, spec, false);
    RegisterBenchmark(("codec.topk_ef.select.turn" + suffix).c_str(), MeasureFeedback, spec, true)
        ->Iterations(kPasses);
    RegisterBenchmark(("codec.topk_ef.nth_element" + suffix).c_str(), MeasureNthElement, spec)
        ->Iterations(kPasses);
    RegisterBenchmark(("codec.topk_ef.nth_element.keys" + suffix).c_str(), MeasureNthElementOfKeys,
                      spec)
        ->Iterations(kPasses);
  }
}

void PrintRatios(const FastestReporter& reporter) {
  for (const auto& [name, spec] : Codecs()) {
    reporter.PrintRatio(name + ".encode", "memcpy", name + ".encode");
    reporter.PrintRatio(name + ".decode_add", "memcpy", name + ".decode_add");
    reporter.PrintRatio(name + ".feedback", name + ".feedback", "loop.add");
  }
  for (const CodecId id : kNumberFormats) {
    for (const std::string operation : {"encode", "decode_add"}) {
      const std::string name = "codec." + std::string(CodecName(id)) + "." + operation;
      reporter.PrintRatio(name + ".loop", "loop." + operation + "." + CodeBits(id), name);
    }
  }
  for (const auto& [suffix, spec] : kDensities) {
    const std::string select = "codec.topk_ef.select" + suffix;
    reporter.PrintRatio(select, select, "loop.add");
    for (const std::string name : {"codec.topk_ef.nth_element", "codec.topk_ef.nth_element.keys"}) {
      reporter.PrintRatio(name + suffix, name + suffix, "codec.topk_ef.select.turn" + suffix);
    }
    for (const std::string name :
         {"codec.topk.decode_add", "codec.topk.scatter_add", "codec.topk.scatter_add.again",
          "codec.elias_fano.encode", "codec.elias_fano.decode", "codec.golomb_rice.encode",
          "codec.golomb_rice.decode"}) {
      reporter.PrintNanosecondsEach(name + suffix, static_cast<double>(EntryCount(spec)));
    }
  }
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::HugePageArena arena;
  std::pmr::set_default_resource(&arena);  // `arena` provides the memory of all measured arrays
  if (!thinwire::InitializeBenchmarks(argc, argv)) return 1;
  thinwire::Register();
  thinwire::FastestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  thinwire::PrintRatios(reporter);
  return 0;
}
