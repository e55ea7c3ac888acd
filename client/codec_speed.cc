#include "client/codec_speed.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/host_parameters.h"
#include "client/host_shard_encoder.h"
#include "client/parameter_memory.h"
#include "client/shard_encoder.h"
#include "common/byte_chain.h"
#include "common/codec/codec.h"
#include "common/partition.h"

namespace thinwire::client {
namespace {

// The first fills caches, residual and threshold.
constexpr int kRuns = 4;

// Errors: the first of WORK.
absl::StatusOr<double> FastestSeconds(Clock& clock, absl::FunctionRef<absl::Status()> work) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < kRuns; ++i) {
    const absl::Time begin = clock.Now();
    if (absl::Status s = work(); !s.ok()) return s;
    least = std::min(least, clock.Now() - begin);
  }
  return absl::ToDoubleSeconds(least);
}

// The sum of four uniform numbers is near enough to a normal one, and cheaper.
std::vector<float> RandomValues(size_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1e-3f, 1e-3f);
  std::vector<float> values(count);
  for (float& value : values) {
    value = uniform(random) + uniform(random) + uniform(random) + uniform(random);
  }
  return values;
}

// A model of one shard, whose gradient lies where its parameters would.
class Workbench {
 public:
  static absl::StatusOr<std::unique_ptr<Workbench>> Make(uint64_t values,
                                                         const ClientOptions& options,
                                                         const Device* device) {
    std::unique_ptr<Workbench> bench(new Workbench(values));
    if (absl::Status s = bench->Open(options, device); !s.ok()) return s;
    return bench;
  }

  absl::StatusOr<CodecCost> Measure(const CodecSpec& spec, Clock& clock) {
    const absl::StatusOr<std::unique_ptr<const Codec>> codec = MakeCodec(spec);
    if (!codec.ok()) return codec.status();
    ByteChain payload;
    const auto encode = FastestSeconds(clock, [&] {
      payload = ByteChain();  // its buffer is used again
      return Encode(spec, **codec, payload);
    });
    if (!encode.ok()) return encode.status();
    const CheckedPayload checked = EncodedPayload(payload, sum_.size());
    const auto decode = FastestSeconds(clock, [&] {
      DecodePayloadAdd(checked, 1, sum_);
      return absl::OkStatus();
    });
    const auto count = static_cast<double>(sum_.size());
    return CodecCost{.spec = spec,
                     .bytes = static_cast<double>(payload.size()) / count,
                     .encode_seconds = *encode / count,
                     .decode_seconds = *decode / count};
  }

 private:
  explicit Workbench(uint64_t values)
      : partition_(
            Partition::Make({{"values", {static_cast<int64_t>(values)}}}, kLargestShardSize, 1)
                .value()),
        sum_(values) {}

  absl::Status Open(const ClientOptions& options, const Device* device) {
    if (device == nullptr) {
      memory_ = std::make_shared<HostParameters>(partition_, options.memory);
      encoder_ = std::make_unique<HostShardEncoder>(partition_, options);
    } else {
      auto memory = device->MakeParameters(partition_);
      if (!memory.ok()) return memory.status();
      memory_ = *std::move(memory);
      auto encoder = device->MakeEncoder(partition_, options);
      if (!encoder.ok()) return encoder.status();
      encoder_ = *std::move(encoder);
    }
    const std::vector<float> random = RandomValues(sum_.size());
    const std::span<const float> values = random;
    return memory_->Fill({&values, 1});
  }

  absl::Status Encode(const CodecSpec& spec, const Codec& codec, ByteChain& to) {
    const std::span<const float> gradient = memory_->tensor(0);
    const ShardGradient shard = {
        .segments = partition_.segments(ShardId{0}), .tensors = {&gradient, 1}, .owner = memory_};
    const absl::Status begun =
        encoder_->Begin({.shard = {0}, .gradient = shard, .spec = spec, .codec = codec});
    if (!begun.ok()) return begun;
    absl::StatusOr<std::optional<ByteChain>> payload = encoder_->Finish();
    if (!payload.ok()) return payload.status();
    to = **std::move(payload);  // what is finite has one
    return absl::OkStatus();
  }

  const Partition partition_;
  std::shared_ptr<ParameterMemory> memory_;
  std::unique_ptr<ShardEncoder> encoder_;
  std::vector<float> sum_;
};

}  // namespace

absl::StatusOr<std::vector<CodecCost>> MeasureCodecs(std::span<const CodecSpec> specs,
                                                     uint64_t values, const ClientOptions& options,
                                                     const Device* device, Clock& clock) {
  const auto bench = Workbench::Make(values, options, device);
  if (!bench.ok()) return bench.status();
  std::vector<CodecCost> costs;
  for (const CodecSpec& spec : specs) {
    const absl::StatusOr<CodecCost> cost = (*bench)->Measure(spec, clock);
    if (!cost.ok()) return cost.status();
    costs.push_back(*cost);
  }
  return costs;
}

}  // namespace thinwire::client
