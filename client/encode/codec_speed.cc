#include "client/encode/codec_speed.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/encode/host_shard_encoder.h"
#include "client/encode/shard_encoder.h"
#include "client/replica/host_parameters.h"
#include "client/replica/parameter_memory.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/memory/byte_chain.h"
#include "common/model/partition.h"

namespace thinwire::client {
namespace {

// The first run is slower than the others: it fills the caches, the residual and the sparse codec's
// threshold prediction.
constexpr int kRuns = 4;

// Runs WORK kRuns times and returns the duration of the fastest run, in seconds. Errors: the first
// error that WORK returns.
absl::StatusOr<double> FastestSeconds(Clock& clock, absl::FunctionRef<absl::Status()> work) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < kRuns; ++i) {
    const absl::Time begin = clock.Now();
    RETURN_IF_ERROR(work());
    least = std::min(least, clock.Now() - begin);
  }
  return absl::ToDoubleSeconds(least);
}

// Returns COUNT random values. Each is the sum of four uniform numbers, which is close to a normal
// distribution and cheaper to compute.
std::vector<float> RandomValues(size_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1e-3f, 1e-3f);
  std::vector<float> values(count);
  for (float& value : values) {
    value = uniform(random) + uniform(random) + uniform(random) + uniform(random);
  }
  return values;
}

// The encoder and decoder under measurement, for a model of a single shard. The gradient to encode
// is stored in the parameter memory of this model.
class Workbench {
 public:
  static absl::StatusOr<std::unique_ptr<Workbench>> Make(uint64_t values,
                                                         const ClientOptions& options,
                                                         const Device* device) {
    std::unique_ptr<Workbench> bench(new Workbench(values));
    RETURN_IF_ERROR(bench->Open(options, device));
    return bench;
  }

  absl::StatusOr<CodecCost> Measure(const CodecSpec& spec, Clock& clock) {
    ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(spec));
    ByteChain payload;
    const auto encode = [&] {
      payload = ByteChain();  // releases the previous payload's buffer for reuse
      return Encode(spec, *codec, payload);
    };
    ASSIGN_OR_RETURN(const double encode_seconds, FastestSeconds(clock, encode));
    const CheckedPayload checked = EncodedPayload(payload, sum_.size());
    const auto decode = [&] {
      DecodePayloadAdd(checked, 1, sum_);
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(const double decode_seconds, FastestSeconds(clock, decode));
    const auto count = static_cast<double>(sum_.size());
    return CodecCost{.spec = spec,
                     .bytes = static_cast<double>(payload.size()) / count,
                     .encode_seconds = encode_seconds / count,
                     .decode_seconds = decode_seconds / count};
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
      ASSIGN_OR_RETURN(memory_, device->MakeParameters(partition_));
      ASSIGN_OR_RETURN(encoder_, device->MakeEncoder(partition_, options));
    }
    const std::vector<float> random = RandomValues(sum_.size());
    const std::span<const float> values = random;
    return memory_->Fill({&values, 1});
  }

  absl::Status Encode(const CodecSpec& spec, const Codec& codec, ByteChain& to) {
    const std::span<const float> gradient = memory_->tensor(0);
    const ShardGradient shard = {
        .segments = partition_.segments(ShardId{0}), .tensors = {&gradient, 1}, .owner = memory_};
    RETURN_IF_ERROR(
        encoder_->Begin({.shard = {0}, .gradient = shard, .spec = spec, .codec = codec}));
    ASSIGN_OR_RETURN(std::optional<ByteChain> payload, encoder_->Finish());
    to = *std::move(payload);  // the payload is not nullopt, because the gradient is finite
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
  ASSIGN_OR_RETURN(const std::unique_ptr<Workbench> bench,
                   Workbench::Make(values, options, device));
  std::vector<CodecCost> costs;
  for (const CodecSpec& spec : specs) {
    ASSIGN_OR_RETURN(CodecCost cost, bench->Measure(spec, clock));
    costs.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace thinwire::client
