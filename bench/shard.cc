// Compares a server's work on one shard (decoding a push, adding it to the sum of gradients,
// optimizer step) with a plain loop that reads and writes as many bytes.
//
// Each call of a benchmark passes one push to Shard::Apply, which decides whether to accept the
// push, checks and decodes its payload, adds the values to the sum of gradients (folds them), and
// runs the optimizer. In sync mode, with one worker, the push also closes the round. The plain loop
// is a single loop, vectorized by the compiler, that
//
//   reads              the payload's bytes and the masters (exact parameters), once each
//   writes             the folded sum and the masters
//   reads and writes   each slot of the optimizer, and the average of the parameters (.average)
//
// and performs the arithmetic of SGD. It does not decode the payload's codes but uses them as
// numbers. A ratio may be below 1: the loop always writes the folded sum, while a shard does not
// write the sum of an update that consists of a single push. The loop does not scan for non-finite
// values. For topk, which has fewer codes than values, the loop adds up the payload's bytes and
// then visits every element of the sum and the masters. With lazy slots (shard.lazy_momentum.topk),
// the optimizer's state changes only where the payload has an entry. For this setting, the loop
// adds up the payload's bytes and then visits as many evenly spaced elements as the payload has
// entries. For each element it updates the master, the slots and the number of the last update, but
// does not apply the decay of missed updates.
//
// Below google-benchmark's table the program prints one line per shard benchmark. `ratio
// shard.fold_sgd.fp32 1.2` is the time of the shard's fastest call divided by the time of the
// loop's fastest call, for 262144 values in async mode. Other settings have longer names:
// shard.fold_sgd.fp32.sync, shard.fold_sgd.fp32.small.
#include "server/core/shard.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>
#include <vector>

#include "bench/fastest.h"
#include "common/codec/codec.h"
#include "common/memory/float_array.h"
#include "common/memory/huge_page_arena.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"

namespace thinwire {
namespace {

constexpr size_t kLargestShard = 262144;
// The default shard size of a job with one server and the model cnn, which has 215,000 values.
constexpr size_t kSmallShard = 27000;
constexpr uint32_t kExamples = 32;
constexpr float kRate = 1e-3f;

struct Setting {
  OptimizerKind optimizer = OptimizerKind::kSgd;
  CodecId codec = CodecId::kFp32;
  size_t value_count = kLargestShard;
  bool sync = false;
  SparseUpdateSpec sparse_updates;
  bool average = false;

  OptimizerSpec Spec() const {
    return {.kind = optimizer, .parameter_average = average ? 0.999 : 0};
  }
  std::string Name() const {
    const std::string what = sparse_updates.lazy_slots ? "lazy_" : "fold_";
    return "shard." + what + std::string(Traits(optimizer).name) + "." +
           std::string(CodecName(codec)) + (sync ? ".sync" : "") +
           (sparse_updates.selection_density.has_value() ? ".gtopk" : "") +
           (average ? ".average" : "") + (value_count == kSmallShard ? ".small" : "");
  }
};

CheckedPayload Payload(CodecId id, size_t value_count) {
  std::vector<float> values(value_count);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = (static_cast<float>(state >> 8) / (1 << 24) - 0.5f) * 1e-2f;
  }
  const auto codec = MakeCodec({.id = id}).value();
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(value_count));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  return CheckPayload(ByteChain(std::move(bytes)), value_count).value();
}

// A shard that has initial values and that worker 0 has joined, together with the next push of
// worker 0.
class ShardWithPush {
 public:
  explicit ShardWithPush(const Setting& setting)
      : optimizer_(MakeOptimizer(setting.Spec()).value()),
        schedule_(Schedule::Make({.learning_rate = kRate}).value()),
        shard_({.value_count = setting.value_count,
                .rule = setting.sync ? Rule::Sync(1) : Rule::Async(1),
                .generation = {},
                .sparse_updates = setting.sparse_updates},
               *optimizer_, schedule_) {
    shard_.Apply(SeedEvent{Payload(CodecId::kFp32, setting.value_count)});
    shard_.Apply(JoinEvent{.worker = {}, .incarnation = {1}});
    ReadEvent read;
    read.incarnation = {1};
    shard_.Apply(read);
    push_.incarnation = {1};
    push_.examples = kExamples;
    push_.payload = Payload(setting.codec, setting.value_count);
  }

  // Applies the next push. Returns true if the shard accepted the push and made an update.
  bool Push() {
    const Version before = shard_.version();
    const Effects effects = shard_.Apply(push_);
    ++push_.step;
    return effects.judgement->verdict == Verdict::kAccept && before < shard_.version();
  }

 private:
  std::unique_ptr<const Optimizer> optimizer_;
  Schedule schedule_;
  Shard shard_;
  PushEvent push_;
};

void MeasureShard(benchmark::State& state, const Setting& setting) {
  ShardWithPush shard(setting);
  MeasureFastest(state, [&] {
    if (!shard.Push()) state.SkipWithError("a push caused no update");
  });
}

// The arrays of the plain loop. Each begins at a page boundary. Arrays whose addresses differ by 32
// or 64 bytes modulo the page size would slow the loop by up to 20 %.
struct Arrays {
  explicit Arrays(const Setting& setting)
      : payload(Payload(setting.codec, setting.value_count).bytes().ToVector()),
        count(setting.value_count),
        slot_count(MakeOptimizer(setting.Spec()).value()->slot_count() + (setting.average ? 1 : 0)),
        sum(count),
        masters(count),
        first(count),
        second(count) {}

  const std::vector<std::byte> payload;
  const size_t count;
  const int slot_count;  // with the average
  FloatArray sum;
  FloatArray masters;
  FloatArray first;
  FloatArray second;
};

template <typename Code, int kSlots>
void PlainLoop(Arrays& arrays) {
  const std::byte* const codes = arrays.payload.data() + 1;
  float* const __restrict sum = arrays.sum.data();
  float* const __restrict masters = arrays.masters.data();
  float* const __restrict first = arrays.first.data();
  float* const __restrict second = arrays.second.data();
  const size_t count = arrays.count;
  for (size_t i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, codes + i * sizeof(Code), sizeof(Code));
    sum[i] = static_cast<float>(kExamples) * static_cast<float>(code);
    float direction = sum[i] * (1.0f / kExamples);
    if constexpr (kSlots > 0) direction = first[i] = 0.9f * first[i] + direction;
    if constexpr (kSlots > 1) direction += second[i] = 0.9f * second[i] + direction;
    masters[i] -= kRate * direction;
  }
}

void PlainSparseLoop(Arrays& arrays) {
  uint32_t bytes = 0;
  for (std::byte byte : arrays.payload) bytes += static_cast<uint32_t>(byte);
  float* const __restrict sum = arrays.sum.data();
  float* const __restrict masters = arrays.masters.data();
  const float value = static_cast<float>(bytes);
  for (size_t i = 0; i < arrays.count; ++i) {
    sum[i] = value;
    masters[i] -= kRate * value;
  }
}

template <int kSlots>
void PlainLazyLoop(Arrays& arrays) {
  constexpr size_t kDistance = 100;  // from one visited element to the next: 1 / topk's density
  uint32_t bytes = 0;
  for (std::byte byte : arrays.payload) bytes += static_cast<uint32_t>(byte);
  const float value = static_cast<float>(bytes);
  float* const __restrict masters = arrays.masters.data();
  float* const __restrict first = arrays.first.data();
  float* const __restrict second = arrays.second.data();
  float* const __restrict last = arrays.sum.data();
  for (size_t i = 0; i < arrays.count; i += kDistance) {
    float direction = value;
    if constexpr (kSlots > 0) direction = first[i] = 0.9f * first[i] + direction;
    if constexpr (kSlots > 1) direction += second[i] = 0.9f * second[i] + direction;
    masters[i] -= kRate * direction;
    last[i] = value;
  }
}

void RunPlainLoop(const Setting& setting, Arrays& arrays) {
  if (setting.sparse_updates.lazy_slots) {
    if (arrays.slot_count == 1) return PlainLazyLoop<1>(arrays);
    if (arrays.slot_count == 2) return PlainLazyLoop<2>(arrays);
    return PlainLazyLoop<0>(arrays);
  }
  switch (setting.codec) {
    case CodecId::kFp32:
      if (arrays.slot_count == 1) return PlainLoop<float, 1>(arrays);
      if (arrays.slot_count == 2) return PlainLoop<float, 2>(arrays);
      return PlainLoop<float, 0>(arrays);
    case CodecId::kFp16:
    case CodecId::kBf16:
      return PlainLoop<uint16_t, 0>(arrays);
    case CodecId::kFp8E5m2:
    case CodecId::kFp8E4m3:
      return PlainLoop<uint8_t, 0>(arrays);
    default:  // sparse codecs
      return PlainSparseLoop(arrays);
  }
}

void MeasurePlainLoop(benchmark::State& state, const Setting& setting) {
  Arrays arrays(setting);
  MeasureFastest(state, [&] { RunPlainLoop(setting, arrays); });
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (bool sync : {false, true}) {
    for (size_t value_count : {kLargestShard, kSmallShard}) {
      for (CodecId codec : {CodecId::kFp32, CodecId::kFp16, CodecId::kBf16, CodecId::kFp8E5m2,
                            CodecId::kFp8E4m3, CodecId::kTopK}) {
        settings.push_back({.codec = codec, .value_count = value_count, .sync = sync});
      }
    }
  }
  for (OptimizerKind optimizer :
       {OptimizerKind::kMomentum, OptimizerKind::kNesterov, OptimizerKind::kAdam,
        OptimizerKind::kAdamW, OptimizerKind::kAdagrad, OptimizerKind::kLion, OptimizerKind::kLars,
        OptimizerKind::kLamb}) {
    settings.push_back({.optimizer = optimizer});
  }
  settings.push_back({.average = true});
  settings.push_back({.optimizer = OptimizerKind::kMomentum, .average = true});
  for (OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    settings.push_back(
        {.optimizer = optimizer, .codec = CodecId::kTopK, .sparse_updates = {.lazy_slots = true}});
  }
  settings.push_back({.optimizer = OptimizerKind::kMomentum,
                      .codec = CodecId::kTopK,
                      .sparse_updates = {.lazy_slots = true, .selection_density = 0.001}});
  // Momentum and topk without lazy slots (every update changes all slots), for comparison with the
  // settings above, which use lazy slots.
  settings.push_back({.optimizer = OptimizerKind::kMomentum, .codec = CodecId::kTopK});
  return settings;
}

void Measure(const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    // Each shard benchmark runs right after its plain loop, under nearly the same machine load.
    benchmark::RegisterBenchmark((setting.Name() + ".plain").c_str(), MeasurePlainLoop, setting);
    benchmark::RegisterBenchmark(setting.Name().c_str(), MeasureShard, setting);
  }
  FastestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  for (const Setting& setting : settings) {
    reporter.PrintRatio(setting.Name(), setting.Name(), setting.Name() + ".plain");
  }
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) {
  thinwire::HugePageArena arena;
  std::pmr::set_default_resource(&arena);  // `arena` provides the memory of all measured arrays
  if (!thinwire::InitializeBenchmarks(argc, argv)) return 1;
  thinwire::Measure(thinwire::Settings());
  return 0;
}
