#include "client/encode/push_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernels/mix_bits.h"

namespace thinwire::client {
namespace {

// Returns the seeds of the codec's random numbers for the shard and step of ENTRY. `shared` is
// equal for all workers; `per_worker` differs between workers.
RandomKeys KeysOf(const PushEntry& entry, WorkerId worker) {
  const uint64_t shared = kernels::MixBits(kernels::MixBits(entry.step.value) + entry.shard.value);
  return {.shared = shared, .per_worker = kernels::MixBits(shared + worker.value + 1)};
}

void AddExamples(uint32_t examples, uint32_t& sum) {
  sum += std::min(examples, std::numeric_limits<uint32_t>::max() - sum);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PushEncoder>> PushEncoder::Make(const Partition& partition,
                                                               const ClientOptions& options,
                                                               const CodecTuner* tuner,
                                                               std::unique_ptr<ShardEncoder> shards,
                                                               LiveResiduals* live) {
  ASSIGN_OR_RETURN(PushSchedule schedule,
                   PushSchedule::Make(options.push, options.warmup, options.planned_steps));
  std::vector<GroupCodec> group_codecs;
  for (const GroupSpec& group : options.groups) {
    GroupCodec& made = group_codecs.emplace_back();
    if (!group.push.has_value()) continue;
    made.spec = *group.push;
    ASSIGN_OR_RETURN(made.codec, MakeCodec(made.spec));
  }
  const HostShardEncoder* host = nullptr;
  if (shards == nullptr) {
    auto made = std::make_unique<HostShardEncoder>(partition, options,
                                                   live != nullptr ? live : options.memory);
    host = made.get();
    shards = std::move(made);
  }
  return std::unique_ptr<PushEncoder>(new PushEncoder(partition, options, tuner,
                                                      std::move(schedule), std::move(group_codecs),
                                                      std::move(shards), host, live));
}

PushEncoder::PushEncoder(const Partition& partition, const ClientOptions& options,
                         const CodecTuner* tuner, PushSchedule schedule,
                         std::vector<GroupCodec> group_codecs, std::unique_ptr<ShardEncoder> shards,
                         const HostShardEncoder* host, LiveResiduals* live)
    : worker_(options.worker),
      corrects_momentum_(options.correction.enabled),
      tuner_(tuner),
      schedule_(std::move(schedule)),
      shards_(std::move(shards)),
      host_(host),
      live_(live),
      most_begun_(shards_->most_begun()),
      group_codecs_(std::move(group_codecs)) {
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    memory_.push_back({.value_count = partition.value_count(ShardId{s}),
                       .is_vector = partition.HoldsVectors(ShardId{s}),
                       .group = partition.group(ShardId{s})});
  }
}

absl::Status PushEncoder::UseCodecs(std::vector<std::optional<CodecSpec>> specs) {
  std::vector<std::unique_ptr<const Codec>> codecs(specs.size());
  for (size_t s = 0; s < specs.size(); ++s) {
    if (!specs[s].has_value()) continue;
    ASSIGN_OR_RETURN(codecs[s], MakeCodec(*specs[s]));
  }
  shard_specs_ = std::move(specs);
  shard_codecs_ = std::move(codecs);
  return absl::OkStatus();
}

void PushEncoder::SendDense(CodecId codec) { dense_codec_ = MakeCodec({.id = codec}).value(); }

PushEncoder::ShardCodec PushEncoder::CodecOf(ShardId shard, Step step) {
  if (dense_codec_ != nullptr) return {{.id = dense_codec_->id()}, *dense_codec_};
  const uint32_t group = memory_[shard.value].group;
  if (!group_codecs_.empty() && group_codecs_[group].codec != nullptr) {
    return {group_codecs_[group].spec, *group_codecs_[group].codec};
  }
  if (!shard_specs_.empty() && shard_specs_[shard.value].has_value()) {
    return {*shard_specs_[shard.value], *shard_codecs_[shard.value]};
  }
  if (tuner_ != nullptr) return {tuner_->SpecOf(shard), tuner_->CodecOf(shard)};
  const CodecSpec spec = schedule_.At(step);
  if (matrix_codec_ == nullptr || spec != spec_) {
    spec_ = spec;
    matrix_codec_ = MakeCodec(spec).value();
    vector_codec_ = MakeCodec(VectorSpec(spec)).value();
  }
  if (memory_[shard.value].is_vector) return {VectorSpec(spec), *vector_codec_};
  return {spec, *matrix_codec_};
}

absl::Status PushEncoder::Begin(PushEntry push, const ShardGradient& gradient, float factor) {
  // Pushes of later steps must not state the same examples.
  push.late_examples = std::exchange(memory_[push.shard.value].late_examples, 0);
  push.payload = ByteChain();
  begun_.push_back(push);
  if (push.examples == 0) return absl::OkStatus();
  if (live_ != nullptr) live_->Change(push.shard);
  const auto [spec, codec] = CodecOf(push.shard, push.step);
  return shards_->Begin({.shard = push.shard,
                         .gradient = gradient,
                         .factor = factor,
                         .spec = spec,
                         .codec = codec,
                         .keys = KeysOf(push, worker_),
                         .error = measures_errors_ ? &error_ : nullptr});
}

absl::StatusOr<PushEncoder::Encoded> PushEncoder::Finish() {
  Encoded encoded = {.push = std::move(begun_.front())};
  begun_.pop_front();
  PushEntry& push = encoded.push;
  if (push.examples > 0) {
    ASSIGN_OR_RETURN(std::optional<ByteChain> payload, shards_->Finish());
    encoded.finite = payload.has_value();
    if (!encoded.finite) push.examples = 0;
    if (encoded.finite) push.payload = *std::move(payload);
  }
  // Once the servers have finished this step, they know the late examples of a push with values. A
  // push without examples sends no values.
  uint32_t& late_examples = memory_[push.shard.value].late_examples;
  if (push.examples == 0) AddExamples(std::exchange(push.late_examples, 0), late_examples);
  if (live_ != nullptr) {
    live_->Keep(push.shard, push.step + 1, Kept(push.shard, late_examples));
  }
  return encoded;
}

void PushEncoder::Refused(const PushEntry& push) {
  AddExamples(push.late_examples, memory_[push.shard.value].late_examples);
}

absl::Status PushEncoder::Late(const PushEntry& push) {
  if (push.examples == 0) return absl::OkStatus();
  uint32_t& late_examples = memory_[push.shard.value].late_examples;
  AddExamples(push.late_examples, late_examples);
  AddExamples(push.examples, late_examples);
  return GiveBack(push, {});
}

absl::Status PushEncoder::GiveBack(const PushEntry& push, std::span<const uint32_t> selected) {
  const auto& [count, is_vector, group, late_examples] = memory_[push.shard.value];
  if (live_ != nullptr) live_->Change(push.shard);
  RETURN_IF_ERROR(shards_->GiveBack(push.shard, EncodedPayload(push.payload, count), selected));
  if (live_ != nullptr) live_->Keep(push.shard, Kept(push.shard, late_examples));
  return absl::OkStatus();
}

ShardResidualsView PushEncoder::Kept(ShardId shard, uint32_t late_examples) const {
  const ShardFeedback feedback = host_->FeedbackOf(shard);
  return {
      .residual = feedback.residual, .momentum = feedback.momentum, .late_examples = late_examples};
}

void PushEncoder::Keep(std::span<const Step> next) {
  if (live_ == nullptr) return;
  for (uint32_t s = 0; s < next.size(); ++s) {
    live_->Keep(ShardId{s}, next[s], Kept(ShardId{s}, memory_[s].late_examples));
  }
}

absl::Status PushEncoder::ReturnUnselected(const PushEntry& push,
                                           std::span<const uint32_t> selected) {
  return GiveBack(push, selected);
}

absl::StatusOr<std::vector<ShardResidualsView>> PushEncoder::residuals() const {
  ASSIGN_OR_RETURN(const std::vector<ShardFeedback> feedback, shards_->feedback());
  std::vector<ShardResidualsView> residuals;
  for (size_t s = 0; s < feedback.size(); ++s) {
    residuals.push_back({.residual = feedback[s].residual,
                         .momentum = feedback[s].momentum,
                         .late_examples = memory_[s].late_examples});
  }
  return residuals;
}

double PushEncoder::NormOf(const PushEntry& push) const {
  if (push.examples == 0) return 0;
  std::vector<float> values(memory_[push.shard.value].value_count);
  DecodePayload(EncodedPayload(push.payload, values.size()), values);
  double norm = 0;
  for (const float value : values) norm += std::abs(value);
  return norm;
}

absl::StatusOr<double> PushEncoder::ResidualNorm() const {
  ASSIGN_OR_RETURN(const std::vector<ShardFeedback> feedback, shards_->feedback());
  double norm = 0;
  for (const ShardFeedback& shard : feedback) {
    for (const float value : shard.residual) norm += std::abs(value);
  }
  return norm;
}

absl::Status PushEncoder::DropBegun() {
  while (may_finish()) RETURN_IF_ERROR(Finish().status());
  return absl::OkStatus();
}

absl::Status PushEncoder::Restore(SavedResiduals saved) {
  for (size_t s = 0; s < memory_.size(); ++s) {
    auto& [residual, momentum, late_examples] = saved.shards[s];
    if (!momentum.empty() && !corrects_momentum_) {
      return absl::FailedPreconditionError(
          absl::StrCat("shard ", s,
                       ": saved momentum without momentum correction (expected 0 "
                       "values, got ",
                       momentum.size(), ")"));
    }
    RETURN_IF_ERROR(shards_->Restore(ShardId{static_cast<uint32_t>(s)}, residual, momentum));
    memory_[s].late_examples = late_examples;
  }
  return absl::OkStatus();
}

}  // namespace thinwire::client
