#include "client/exchange/push_pipeline.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/transport/join_leave.h"
#include "common/model/fragments.h"
#include "common/time/trace.h"
#include "proto/parameter_service.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {
namespace {

// The pushes of a step share messages, because each message takes time of both processes. A message
// is sent when its payloads have so many bytes: if the next gradient is not known yet, and if it can
// be encoded at once. Even a slow link sends the first number of bytes in a fraction of a step.
constexpr size_t kWorthAMessage = 8 << 10;
constexpr size_t kWorthAMessageAtOnce = 64 << 10;
// A shard of more values is sent at once, because its encoding takes longer than a message, also if
// the payload is short.
constexpr uint64_t kLongestHeldShard = 65536;

}  // namespace

PushPipeline::PushPipeline(const ExchangeParts& parts,
                           const std::vector<std::unique_ptr<ServerLink>>& links, ReadPath& reads,
                           GtopkReturns& returns, std::function<void(absl::Status)> fail)
    : parts_(parts),
      links_(links),
      reads_(reads),
      returns_(returns),
      fail_(std::move(fail)),
      fragments_(DealFragments(parts.partition, parts.options.fragments)),
      gradients_(parts.partition, fragments_),
      clip_(parts.options.gradient_clip, parts.options.worker_count,
            parts.partition.tensors().size()) {}

// Stage 1: gradients become ready, in any order.

void PushPipeline::BeginStep(Step step, uint32_t examples, float scale, float rate_factor) {
  if (stopped_) return;
  examples_ = examples;
  rate_factor_ = rate_factor;
  parts_.encoder.BeginStep(step);
  gradients_.Begin();
  clip_.Begin(scale);
  if (!has_pushes_) steps_.pop_back();
  steps_.push_back({.verdicts = StepVerdicts(step, parts_.partition.shard_count()),
                    .spans = PushSpans(parts_.options.tracer, parts_.partition, step)});
  step_ = step;
  next_ = step + 1;
  has_pushes_ = false;
  encoded_ = false;
  continued_ = false;
  copies_ = reads_.steps_ahead() > 0;
}

void PushPipeline::Ready(uint32_t tensor, std::span<const float> gradient,
                         std::shared_ptr<const void> owner) {
  if (stopped_) return;
  if (clip_.clips()) {
    // A step without examples sends no values. The gradient is not read, and its norm is set to 0.
    const absl::StatusOr<double> squares =
        examples_ > 0 ? parts_.encoder.SumOfSquares(gradient) : absl::StatusOr<double>(0);
    if (!squares.ok()) return fail_(squares.status());
    clip_.Ready(tensor, *squares);
  }
  gradients_.Ready(tensor, gradient, std::move(owner));
  EncodeMore();
}

void PushPipeline::ReadyFragment(uint32_t fragment,
                                 std::span<const std::span<const float>> tensors) {
  if (stopped_) return;
  gradients_.ReadyFragment(fragment, tensors);
  EncodeMore();
}

// Stage 2: shards are encoded in the order of all workers, one per task of the event loop.

bool PushPipeline::MayBegin() {
  return parts_.encoder.may_begin() && gradients_.NextIsReady() && clip_.known() &&
         LinkOf(gradients_.next()).queue().unsent_bytes() < kMessageBytes;
}

void PushPipeline::EncodeMore() {
  if (encode_posted_ || !(parts_.encoder.may_finish() || MayBegin())) return;
  encode_posted_ = true;
  parts_.loop->Post(scope_.Bind([this] {
    encode_posted_ = false;
    if (!stopped_) EncodeOneShard();
  }));
}

void PushPipeline::OnQueueRoom() {
  EncodeMore();
  // In a task of its own, because the link is about to write a message.
  if (encoded_ && !continued_) {
    parts_.loop->Post(scope_.Bind([this] { ContinueIfPossible(); }));
  }
}

void PushPipeline::EncodeOneShard() {
  const absl::Time begin = parts_.loop->Now();
  const TraceSpan span(parts_.options.tracer, "exchange", "encode", {.step = step_});
  if (MayBegin()) {
    if (absl::Status begun = BeginShard(); !begun.ok()) return fail_(std::move(begun));
  }
  // Waits for the oldest begun shard only if no further shard can begin, so that a device has as
  // many shards to encode as possible.
  if (parts_.encoder.may_finish() && !MayBegin()) {
    absl::StatusOr<PushEncoder::Encoded> encoded = parts_.encoder.Finish();
    if (!encoded.ok()) return fail_(encoded.status());
    const absl::Duration time = parts_.loop->Now() - begin;
    parts_.meter.Encoded(time);
    parts_.report.Count(WorkerCounters::kEncodeMicrosFieldNumber,
                        static_cast<uint64_t>(absl::ToInt64Microseconds(time)));
    Send(*std::move(encoded));
  }
  EncodeMore();
}

absl::Status PushPipeline::BeginShard() {
  const ShardId shard = gradients_.next();
  ShardGradient gradient = gradients_.Take();
  // A payload may refer to the trainer's gradient instead of a copy. The gradient stays unchanged
  // only until the next step. GtopkReturns keeps the payload for longer, and so does a step in
  // flight, so the encoder must copy the gradient.
  if (returns_.Keeps(shard) || copies_) gradient.may_alias = false;
  if (!std::exchange(has_pushes_, true)) parts_.listener.OnUnjudged(steps_.size());
  return parts_.encoder.Begin({.shard = shard,
                               .step = step_,
                               .examples = examples_,
                               .computed_version = parts_.replica.held_version(shard),
                               .rate_factor = rate_factor_},
                              gradient, clip_.factor());
}

// Stage 3: the push is queued for its server.

void PushPipeline::Send(PushEncoder::Encoded encoded) {
  PushEntry& push = encoded.push;
  const ShardId shard = push.shard;
  if (!encoded.finite) parts_.report.Count(WorkerCounters::kNonfiniteGradientsFieldNumber);
  if (push.examples > 0) {
    parts_.report.Count(WorkerCounters::kPushBytesRawFieldNumber,
                        parts_.partition.value_count(shard) * sizeof(float));
    parts_.report.Count(WorkerCounters::kPushBytesEncodedFieldNumber, push.payload.size());
  }
  reads_.ExpectAfterPush(shard, push.step + 1);
  steps_.back().spans.Queued(shard);
  ServerLink& link = LinkOf(shard);
  link.queue().Push(std::move(push));
  const bool continues = parts_.encoder.may_finish() || gradients_.NextIsReady();
  const bool last = !continues && gradients_.done();
  if (last) {
    for (const std::unique_ptr<ServerLink>& each : links_) each->SendQueued();
  } else {
    // The next fragment may become ready many local steps later.
    const bool is_urgent =
        fragments_.size() > 1 || parts_.partition.value_count(shard) > kLongestHeldShard;
    const size_t least = continues ? kWorthAMessageAtOnce : kWorthAMessage;
    if (is_urgent || link.queue().unsent_bytes() >= least) link.SendQueued();
  }
  reads_.MergeKept(shard);
  if (stopped_ || !last) return;
  encoded_ = true;
  parts_.listener.OnStepEncoded();
  ContinueIfPossible();
}

// Stage 4: the server's verdict arrives.

void PushPipeline::OnVerdict(ServerLink& link, const VerdictEntry& verdict) {
  if (stopped_) return;
  const auto abort = [&](const std::string& why) {
    fail_(WithServerName(parts_.transport, link.server(), absl::AbortedError(why)));
  };
  switch (verdict.kind) {
    case PushVerdict::STALE:
      return abort("lost the job's state: the job has another generation now");
    case PushVerdict::FENCED:
      return fail_(FencedError(parts_.options));
    case PushVerdict::EARLY:
      return abort(absl::StrCat("lost its state: shard ", verdict.shard.value, " is at step ",
                                verdict.frontier.value, ", too far behind for a push of step ",
                                verdict.step.value));
    case PushVerdict::ACCEPT:
    case PushVerdict::REPEAT:
    case PushVerdict::LATE:
    case PushVerdict::REFUSED:
      break;
    default:
      return abort(absl::StrCat("unknown verdict (expected 1 to 7, got ", verdict.kind, ")"));
  }
  const std::optional<PushEntry> push = link.queue().FinishPush(verdict.shard, verdict.step);
  if (!push.has_value()) return;  // the server received the push twice, or sent the verdict twice
  CountVerdict(verdict);
  parts_.meter.Judged(push->payload.size(), parts_.loop->Now());
  const bool late = verdict.kind == PushVerdict::LATE;
  absl::Status handled;
  if (verdict.kind == PushVerdict::ACCEPT) {
    handled = returns_.OnAccepted(*push);
  } else if (late) {
    handled = parts_.encoder.Late(*push);
  } else {
    parts_.encoder.Refused(*push);
  }
  if (!handled.ok()) return fail_(std::move(handled));
  const auto step = std::ranges::find_if(
      steps_, [&](const StepInFlight& s) { return s.verdicts.step() == push->step; });
  step->verdicts.Add(late, verdict.frontier);
  step->spans.Judged(verdict.shard);
  if (step->verdicts.complete()) FinishSteps();
}

void PushPipeline::CountVerdict(const VerdictEntry& verdict) {
  StatusReport& report = parts_.report;
  if (verdict.again || verdict.kind == PushVerdict::REPEAT) {
    report.Count(WorkerCounters::kRepeatedPushesFieldNumber);
  }
  if (verdict.kind == PushVerdict::ACCEPT) report.Count(WorkerCounters::kAcceptedPushesFieldNumber);
  if (verdict.kind == PushVerdict::LATE) report.Count(WorkerCounters::kLatePushesFieldNumber);
  if (verdict.kind == PushVerdict::REFUSED) report.Count(WorkerCounters::kRefusedPushesFieldNumber);
}

// Stage 5: the last verdict ends a step.

void PushPipeline::FinishSteps() {
  while (!steps_.empty() && steps_.front().verdicts.complete()) {
    if (parts_.tuner != nullptr) {
      UpdateChoices();
    } else {
      parts_.meter.EndStep();
    }
    const StepVerdicts& verdicts = steps_.front().verdicts;
    if (verdicts.late()) jump_to_ = std::max(jump_to_, verdicts.next());
    steps_.pop_front();
  }
  parts_.listener.OnUnjudged(unjudged_count());
}

void PushPipeline::ContinueIfPossible() {
  if (stopped_ || !encoded_ || continued_) return;
  if (unjudged_count() > (copies_ ? reads_.steps_ahead() : 0)) return;
  const bool is_behind = std::ranges::any_of(
      links_, [this](const auto& link) { return link->queue().HasUnsentBefore(step_); });
  if (is_behind) return;
  continued_ = true;
  Jump();
  parts_.listener.OnNextStep(next_);
}

void PushPipeline::Jump() {
  if (jump_to_ <= next_) return;
  next_ = jump_to_;
  parts_.report.Count(WorkerCounters::kJumpedStepsFieldNumber);
  reads_.ReadAll(next_);
}

Step PushPipeline::Settle() {
  if (!has_pushes_) {
    next_ = step_;
    steps_.pop_back();
    has_pushes_ = true;
  }
  Jump();
  reads_.ExpectExact();
  return next_;
}

void PushPipeline::UpdateChoices() {
  if (!parts_.tuner->EndStep()) return;
  for (const GroupCodec& group : parts_.tuner->choices()) {
    LOG(INFO) << group.group << ": pushed as " << group.codec << " from step " << next() + 1 << ": "
              << group.reason;
  }
  parts_.report.set_choices(parts_.tuner->choices());
}

}  // namespace thinwire::client
