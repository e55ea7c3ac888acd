#include "client/push_encoder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/codec/dense.h"
#include "common/mix_bits.h"
#include "common/vector_shards.h"
#include "kernels/finite.h"
#include "kernels/scale.h"

namespace thinwire::client {
namespace {

// What vectors go in where matrices go in MATRICES.
CodecSpec VectorSpec(const CodecSpec& matrices) {
  const CodecId id = IsDense(matrices.id) ? matrices.id : matrices.values;
  return {.id = CarriesParameters(id) ? id : CodecId::kFp8E5m2};
}

// All workers share a step's draw of a shard, and none shares its own.
Turn TurnOf(const PushEntry& entry, WorkerId worker) {
  const uint64_t shared = MixBits(MixBits(entry.step.value) + entry.shard.value);
  return {.shared_draw = shared, .own_draw = MixBits(shared + worker.value + 1)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<PushEncoder>> PushEncoder::Make(const Partition& partition,
                                                               const ClientOptions& options,
                                                               const CodecTuner* tuner) {
  absl::StatusOr<PushSchedule> schedule =
      PushSchedule::Make(options.push, options.warmup, options.planned_steps);
  if (!schedule.ok()) return schedule.status();
  return std::unique_ptr<PushEncoder>(
      new PushEncoder(partition, options, tuner, *std::move(schedule)));
}

PushEncoder::PushEncoder(const Partition& partition, const ClientOptions& options,
                         const CodecTuner* tuner, PushSchedule schedule)
    : worker_(options.worker), tuner_(tuner), schedule_(std::move(schedule)) {
  shards_.reserve(partition.shard_count());
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    const ShardId shard{s};
    shards_.push_back(
        {.is_vector = HoldsVectors(partition, shard),
         .feedback = ErrorFeedback(partition.value_count(shard), options.error_feedback),
         .correction = MomentumCorrection(options.correction)});
  }
}

const Codec& PushEncoder::CodecOf(ShardId shard, Step step) {
  if (tuner_ != nullptr) return tuner_->CodecOf(shard);
  const CodecSpec spec = schedule_.At(step);
  if (matrix_codec_ == nullptr || spec != spec_) {
    spec_ = spec;
    matrix_codec_ = MakeCodec(spec).value();
    vector_codec_ = MakeCodec(VectorSpec(spec)).value();
  }
  return shards_[shard.value].is_vector ? *vector_codec_ : *matrix_codec_;
}

std::optional<std::span<const float>> PushEncoder::Scaled(std::span<const float> gradient,
                                                          float factor) {
  if (factor == 1) {
    if (!kernels::AllFinite(gradient)) return std::nullopt;
    return gradient;
  }
  scaled_.resize(gradient.size());
  if (!kernels::ScaleFinite(factor, gradient, scaled_)) return std::nullopt;
  return scaled_;
}

bool PushEncoder::Encode(std::span<const float> gradient, PushEntry& entry,
                         const std::shared_ptr<const void>& owner, float factor) {
  ShardMemory& memory = shards_[entry.shard.value];
  entry.late_examples = memory.late_examples;
  entry.payload = ByteChain();
  if (entry.examples == 0) return true;
  const std::optional<std::span<const float>> finite = Scaled(gradient, factor);
  if (!finite.has_value()) {
    entry.examples = 0;
    return false;
  }
  const Codec& codec = CodecOf(entry.shard, entry.step);
  const std::span<const float> values = memory.correction.Correct(*finite, direction_);
  if (owner != nullptr && values.data() == gradient.data() && memory.feedback.SendsAsItIs(codec)) {
    entry.payload = LendFp32(gradient, owner);
    return true;
  }
  const std::shared_ptr<const BufferPool::Buffer> buffer =
      pool_.Take(codec.MaxPayloadBytes(values.size()));
  const size_t size = memory.feedback.Encode(codec, values, TurnOf(entry, worker_), buffer->span());
  entry.payload = ByteChain(buffer->span().first(size), buffer);
  memory.correction.Sent(entry.payload);
  return true;
}

void PushEncoder::Accepted(const PushEntry& push) {
  // A push of weight 0 brought nothing, so what was owed still is.
  if (push.examples > 0) shards_[push.shard.value].late_examples = 0;
}

void PushEncoder::Late(const PushEntry& push) {
  if (push.examples == 0) return;
  ShardMemory& memory = shards_[push.shard.value];
  memory.feedback.GiveBack(push.payload);
  const uint32_t room = std::numeric_limits<uint32_t>::max() - memory.late_examples;
  memory.late_examples += std::min(push.examples, room);
}

void PushEncoder::PutBack(const PushEntry& push, std::span<const uint32_t> taken) {
  shards_[push.shard.value].feedback.GiveBack(push.payload, taken);
}

std::vector<ShardResidualsView> PushEncoder::residuals() const {
  std::vector<ShardResidualsView> residuals;
  for (const ShardMemory& memory : shards_) {
    residuals.push_back({.residual = memory.feedback.residual(),
                         .momentum = memory.correction.momentum(),
                         .late_examples = memory.late_examples});
  }
  return residuals;
}

absl::Status PushEncoder::Restore(SavedResiduals saved) {
  for (size_t s = 0; s < shards_.size(); ++s) {
    ShardMemory& memory = shards_[s];
    auto& [residual, momentum, late_examples] = saved.shards[s];
    if (!momentum.empty() && !memory.correction.enabled()) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", s, ": want no momentum, for there is no momentum correction; got ",
                       momentum.size(), " values of it"));
    }
    memory.feedback.Restore(std::move(residual));
    memory.correction.Restore(std::move(momentum));
    memory.late_examples = late_examples;
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
