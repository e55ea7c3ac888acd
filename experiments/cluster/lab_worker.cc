#include "experiments/cluster/lab_worker.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "experiments/cluster/lab_server.h"
#include "proto/parameter_service.pb.h"
#include "server/core/effects.h"

namespace thinwire::lab {

absl::StatusOr<std::unique_ptr<LabWorker>> LabWorker::Make(const Shared& shared,
                                                           const ClientOptions& options,
                                                           absl::Duration delay) {
  ASSIGN_OR_RETURN(auto encoder, client::PushEncoder::Make(shared.partition, options));
  return std::unique_ptr<LabWorker>(new LabWorker(shared, options, delay, std::move(encoder)));
}

LabWorker::LabWorker(const Shared& shared, const ClientOptions& options, absl::Duration delay,
                     std::unique_ptr<client::PushEncoder> encoder)
    : shared_(shared),
      options_(options),
      delay_(delay),
      replica_(shared.partition),
      encoder_(std::move(encoder)),
      returns_(shared.partition, *encoder_, report_),
      clip_(options.gradient_clip, options.worker_count, shared.partition.tensors().size()),
      ages_(shared.partition) {
  for (uint32_t s = 0; s < options.server_count; ++s) {
    links_.emplace_back(shared.partition.ShardsOf(ServerId{s}));
  }
  if (shared.task.local.enabled()) local_.emplace(shared.task.local, shared.partition.tensors());
}

absl::StatusOr<client::SavedResiduals> LabWorker::Save() const {
  client::SavedResiduals saved;
  ASSIGN_OR_RETURN(const auto residuals, encoder_->residuals());
  for (const client::ShardResidualsView& shard : residuals) {
    saved.shards.push_back({.residual = {shard.residual.begin(), shard.residual.end()},
                            .momentum = {shard.momentum.begin(), shard.momentum.end()},
                            .late_examples = shard.late_examples});
  }
  return saved;
}

void LabWorker::ReadAll(Step step) {
  for (uint32_t s = 0; s < shared_.partition.shard_count(); ++s) {
    const ShardId shard{s};
    links_[shared_.partition.server(shard).value].Read(shard, step);
  }
  missing_count_ = shared_.partition.shard_count();
  SendQueued();
}

void LabWorker::SendQueued() {
  for (uint32_t s = 0; s < links_.size(); ++s) {
    while (links_[s].has_unsent()) {
      WorkerFrame frame = {.worker = options_.worker,
                           .incarnation = kLabIncarnation,
                           .generation = kLabGeneration,
                           .epoch = kLabEpoch};
      if (!links_[s].FillMessage(replica_, options_.pull, frame)) break;
      shared_.send(options_.worker, ServerId{s}, WriteFrame(frame));
    }
  }
}

void LabWorker::Receive(ServerId server, const ByteChain& bytes) {
  const absl::StatusOr<ServerFrame> frame = ParseServerFrame(bytes);
  if (!frame.ok()) return shared_.failed(frame.status());
  client::SendQueue& link = links_[server.value];
  for (const VerdictEntry& verdict : frame->verdicts) {
    const absl::Status handled = OnVerdict(link, verdict);
    if (!handled.ok()) return shared_.failed(handled);
  }
  for (const ParametersEntry& entry : frame->parameters) OnParameters(link, entry);
  const bool computes = computed_.valid();
  if (!computes && judged_ && missing_count_ == 0 && step_ < shared_.end) Compute();
}

absl::Status LabWorker::OnVerdict(client::SendQueue& link, const VerdictEntry& entry) {
  const auto verdict = static_cast<Verdict>(entry.kind);
  const std::optional<PushEntry> push = link.FinishPush(entry.shard, entry.step);
  if (!push.has_value()) return absl::InternalError("a verdict of no push has arrived");
  switch (verdict) {
    case Verdict::kAccept:
      encoder_->Accepted(*push);
      if (push->examples > 0) {
        ages_.Accepted(push->shard, push->step,
                       EncodedPayload(push->payload, shared_.partition.value_count(push->shard)));
      }
      RETURN_IF_ERROR(returns_.OnAccepted(*push));
      break;
    case Verdict::kLate:
      RETURN_IF_ERROR(encoder_->Late(*push));
      break;
    case Verdict::kRefused:
      break;
    default:
      return absl::InternalError(absl::StrCat("worker ", options_.worker.value, ", step ",
                                              entry.step.value, ": unexpected verdict (got ",
                                              entry.kind, ")"));
  }
  verdicts_.Add(verdict == Verdict::kLate, entry.frontier);
  return verdicts_.complete() ? FinishStep() : absl::OkStatus();
}

absl::Status LabWorker::FinishStep() {
  const Step next = verdicts_.next();
  const bool jumps = next > step_ + 1;
  step_ = next;
  judged_ = true;
  if (step_ >= shared_.end) {
    shared_.finished(options_.worker);
    return absl::OkStatus();
  }
  if (!jumps) return absl::OkStatus();
  // The reads below name the versions of the replica.
  RETURN_IF_ERROR(MergeArrived());
  ReadAll(step_);
  return absl::OkStatus();
}

void LabWorker::OnParameters(client::SendQueue& link, const ParametersEntry& entry) {
  // After a jump, parameters of the skipped step may arrive.
  const bool awaited = entry.more ? link.AwaitsParameters(entry.shard, entry.step)
                                  : link.FinishRead(entry.shard, entry.step);
  if (!awaited) return;
  arrived_.push_back(entry);
  if (!entry.more) --missing_count_;
}

void LabWorker::Compute() {
  absl::Duration decode;
  for (const ParametersEntry& entry : arrived_) {
    if (entry.kind == Parameters::MOVE) continue;  // an exact delta has no codec
    decode += shared_.costs.Decode(entry.payload, shared_.partition.value_count(entry.shard));
  }
  const absl::Duration begin = shared_.queue.elapsed() + decode;
  const uint64_t passes = shared_.pool.own().pass_count(options_.worker, step_);
  // A deal may have increased the passes of a step.
  const uint64_t step_passes = std::max(shared_.task.step_passes(), passes);
  const absl::Duration time =
      shared_.times.OfStep(options_.worker, step_, step_passes, passes, begin) + delay_;
  shared_.began(options_.worker, time);
  computed_ = shared_.pool.Submit<absl::StatusOr<StepPushes>>(
      [this, deals = shared_.deals](LearningTask& task) {
        if (deals != nullptr) task.Follow(*deals);
        return ComputeStep(task);
      });
  shared_.queue.At(begin + time, [this] { OnComputed(); });
}

void LabWorker::OnComputed() {
  absl::StatusOr<StepPushes> result = std::exchange(computed_, {}).get();
  if (!result.ok()) return shared_.failed(result.status());
  shared_.computed(result->gradient);
  absl::Duration encode;
  for (const PushEntry& push : result->pushes) {
    encode += shared_.costs.Encode(push.payload, shared_.partition.value_count(push.shard));
  }
  judged_ = false;
  if (encode == absl::ZeroDuration()) return SendPushes(std::move(result->pushes));
  shared_.queue.After(encode, [this, pushes = std::move(result->pushes)] { SendPushes(pushes); });
}

void LabWorker::SendPushes(std::vector<PushEntry> pushes) {
  verdicts_.Begin(step_, shared_.partition.shard_count());
  missing_count_ = shared_.partition.shard_count();
  for (PushEntry& push : pushes) {
    links_[shared_.partition.server(push.shard).value].Push(std::move(push));
  }
  SendQueued();
}

absl::Status LabWorker::MergeArrived() {
  for (const ParametersEntry& entry : std::exchange(arrived_, {})) {
    ASSIGN_OR_RETURN(const client::Replica::Merged merged, replica_.Merge(entry));
    if (merged != client::Replica::Merged::kDone) {
      return absl::InternalError(absl::StrCat("worker ", options_.worker.value, ", shard ",
                                              entry.shard.value,
                                              ": the replica cannot use its parameters"));
    }
    if (!entry.more) RETURN_IF_ERROR(returns_.OnParameters(entry));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepPushes> LabWorker::ComputeStep(LearningTask& task) {
  RETURN_IF_ERROR(MergeArrived());
  if (step_ == shared_.measured_from && options_.worker == WorkerId{0}) {
    encoder_->MeasureErrors(true);
  }
  std::vector<std::span<float>> parameters;
  for (uint32_t i = 0; i < shared_.partition.tensors().size(); ++i) {
    parameters.push_back(replica_.tensor(i));
  }
  ASSIGN_OR_RETURN(StepPushes computed, ComputePushes(task, options_.worker, step_, parameters,
                                                      {.partition = shared_.partition,
                                                       .encoder = *encoder_,
                                                       .clip = clip_,
                                                       .local = local_ ? &*local_ : nullptr,
                                                       .returns = &returns_}));
  for (PushEntry& push : computed.pushes) {
    push.computed_version = replica_.held_version(push.shard);
  }
  return computed;
}

}  // namespace thinwire::lab
