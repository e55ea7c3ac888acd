#include "client/exchange.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/membership.h"
#include "proto/parameter_service.pb.h"

namespace thinwire::client {

Exchange::Exchange(Parts parts, std::vector<JoinReply> replies)
    : parts_(std::move(parts)),
      incarnation_{replies[0].incarnation()},
      generation_{replies[0].generation()},
      gradients_(parts_.partition),
      clip_(parts_.options.gradient_clip, parts_.options.worker_count,
            parts_.partition.tensors().size()),
      put_backs_(parts_.partition.shard_count()),
      hearing_(parts_.options.silence, parts_.options.server_count, parts_.loop->Now()),
      last_tick_(parts_.loop->Now()) {
  MakePeers(replies);
  MakeHeartbeats(replies[0]);
}

void Exchange::MakePeers(const std::vector<JoinReply>& replies) {
  for (uint32_t s = 0; s < parts_.options.server_count; ++s) {
    const ServerId server{s};
    Peer peer{.epoch = Epoch{replies[s].epoch()},
              .outbox = Outbox(parts_.partition.ShardsOf(server))};
    for (const ShardState& state : replies[s].shards()) {
      const ShardId shard{state.shard()};
      if (shard.value >= parts_.partition.shard_count()) continue;
      if (parts_.partition.server(shard) == server && !state.seeded()) peer.outbox.Seed(shard);
    }
    Link::Hooks hooks = {
        .has_unsent = [this, s] { return peers_[s].outbox.has_unsent(); },
        .next_frame = [this, server] { return NextFrame(server); },
        .on_written = [this, server] { hearing_.StreamHeld(server, parts_.loop->Now()); },
        .on_frame = [this, server](const ByteChain& bytes) { OnFrame(server, bytes); },
        .on_lost = [this, server](const absl::Status& status) { OnLost(server, status); },
    };
    peer.link = std::make_unique<Link>(server, parts_.transport, *parts_.loop, std::move(hooks));
    peers_.push_back(std::move(peer));
  }
}

void Exchange::MakeHeartbeats(const JoinReply& lead) {
  const ClientOptions& options = parts_.options;
  std::vector<HeartbeatRequest> requests;
  for (const Peer& peer : peers_) {
    HeartbeatRequest request;
    request.set_worker(options.worker.value);
    request.set_incarnation(incarnation_.value);
    request.set_epoch(peer.epoch.value);
    requests.push_back(std::move(request));
  }
  const absl::Duration third = absl::Seconds(lead.lease_seconds()) / 3;
  const absl::Duration interval =
      std::max(std::min(third, options.heartbeat_interval), absl::Milliseconds(1));
  tick_interval_ = std::min(interval, options.silence / 4);
  heartbeats_ = std::make_unique<Heartbeats>(
      parts_.transport, parts_.loop, std::move(requests), interval,
      std::min(options.silence, absl::Seconds(2)),
      [this](ServerId server, const auto& reply) { OnHeartbeat(server, reply); });
}

void Exchange::Start(Step first) {
  reading_ = first;
  for (uint32_t s = 0; s < parts_.partition.shard_count(); ++s) {
    OutboxOf(ShardId{s}).Read(ShardId{s}, first);
  }
  heartbeats_->Start();
  for (Peer& peer : peers_) peer.link->Pump();
  Tick();
}

void Exchange::Stop() {
  stopped_ = true;
  heartbeats_->Stop();
  for (Peer& peer : peers_) peer.link->Close();
}

Outbox& Exchange::OutboxOf(ShardId shard) {
  return peers_[parts_.partition.server(shard).value].outbox;
}

ByteChain Exchange::NextFrame(ServerId server) {
  Peer& peer = peers_[server.value];
  WorkerFrame frame{.worker = parts_.options.worker,
                    .incarnation = incarnation_,
                    .generation = generation_,
                    .epoch = peer.epoch};
  if (!peer.outbox.TakeNext(parts_.replica, parts_.options.pull, frame)) return ByteChain();
  if (parts_.tuner != nullptr) {
    size_t pushed = 0;
    for (const PushEntry& push : frame.pushes) pushed += push.payload.size();
    parts_.tuner->meter().Sent(pushed, parts_.loop->Now());
  }
  EncodeSoon();  // there is room for more
  ByteChain bytes = WriteFrame(frame);
  parts_.report.Count(WorkerCounters::kSentBytesFieldNumber, bytes.size());
  return bytes;
}

void Exchange::BeginStep(Step step, uint32_t examples, float scale) {
  if (stopped_) return;
  examples_ = examples;
  gradients_.Begin();
  clip_.Begin(scale);
  verdicts_.Begin(step, parts_.partition.shard_count());
}

void Exchange::Ready(uint32_t tensor, std::span<const float> gradient,
                     std::shared_ptr<const void> owner) {
  if (stopped_) return;
  if (clip_.clips()) {
    // Of a step of weight 0 no value is looked at.
    const absl::StatusOr<double> squares =
        examples_ > 0 ? parts_.encoder.SumOfSquares(gradient) : absl::StatusOr<double>(0);
    if (!squares.ok()) return Fail(squares.status());
    clip_.Ready(tensor, *squares);
  }
  gradients_.Ready(tensor, gradient, std::move(owner));
  EncodeSoon();
}

bool Exchange::MayBegin() {
  // No further ahead of the wire than a message: so what is sent was just written, and the buffers
  // of a few messages serve a whole model.
  return parts_.encoder.may_begin() && gradients_.NextIsReady() && clip_.known() &&
         OutboxOf(gradients_.next()).unsent_bytes() < kMessageBytes;
}

void Exchange::EncodeSoon() {
  if (encode_posted_ || !(parts_.encoder.may_finish() || MayBegin())) return;
  encode_posted_ = true;
  // One shard at a time, so that what comes meanwhile is not kept waiting.
  parts_.loop->Post([this] {
    encode_posted_ = false;
    if (!stopped_) EncodeOne();
  });
}

// The next shard is begun before the last one is waited for.
void Exchange::EncodeOne() {
  const absl::Time begin = parts_.loop->Now();
  if (MayBegin()) {
    if (absl::Status s = BeginPush(); !s.ok()) return Fail(std::move(s));
  }
  if (parts_.encoder.may_finish() && !MayBegin()) {
    absl::StatusOr<PushEncoder::Encoded> encoded = parts_.encoder.Finish();
    if (!encoded.ok()) return Fail(encoded.status());
    if (parts_.tuner != nullptr) parts_.tuner->meter().Encoded(parts_.loop->Now() - begin);
    SendPush(*std::move(encoded));
  }
  EncodeSoon();
}

absl::Status Exchange::BeginPush() {
  const ShardId shard = gradients_.next();
  ShardGradient gradient = gradients_.Take();
  // What may be put back is kept for longer than its owner promised to leave it alone.
  if (put_backs_.Keeps(shard)) gradient.may_lend = false;
  return parts_.encoder.Begin({.shard = shard,
                               .step = verdicts_.step(),
                               .examples = examples_,
                               .computed_version = parts_.replica.held_version(shard)},
                              gradient, clip_.factor());
}

void Exchange::SendPush(PushEncoder::Encoded encoded) {
  PushEntry& push = encoded.push;
  const ShardId shard = push.shard;
  if (!encoded.finite) parts_.report.Count(WorkerCounters::kNonfiniteGradientsFieldNumber);
  if (push.examples > 0) {
    parts_.report.Count(WorkerCounters::kPushBytesRawFieldNumber,
                        parts_.partition.value_count(shard) * sizeof(float));
    parts_.report.Count(WorkerCounters::kPushBytesEncodedFieldNumber, push.payload.size());
  }
  parts_.rendezvous.Expect(shard);
  reading_ = push.step + 1;
  OutboxOf(shard).Push(std::move(push));
  peers_[parts_.partition.server(shard).value].link->Pump();
  if (gradients_.done() && !parts_.encoder.may_finish()) parts_.rendezvous.Encoded();
}

void Exchange::OnFrame(ServerId server, const ByteChain& bytes) {
  hearing_.StreamSpoke(server, parts_.loop->Now());
  parts_.report.Count(WorkerCounters::kReceivedBytesFieldNumber, bytes.size());
  const absl::StatusOr<ServerFrame> frame = ParseServerFrame(bytes);
  if (!frame.ok()) {
    Fail(WithServer(parts_.transport, server, absl::InternalError(frame.status().message())));
    return;
  }
  if (!IsSameJob(server, frame->generation, frame->epoch)) return;
  for (const VerdictEntry& verdict : frame->verdicts) {
    if (!stopped_) OnVerdict(server, verdict);
  }
  for (const ParametersEntry& entry : frame->parameters) {
    if (!stopped_) OnParameters(server, entry);
  }
  bool told = false;
  for (const WaitingEntry& wait : frame->waits) {
    if (!peers_[server.value].outbox.AwaitsAnswer(wait.shard)) continue;
    waits_.Add(wait);
    told = true;
  }
  if (told) parts_.report.set_waiting(waits_.Text());
}

void Exchange::OnVerdict(ServerId server, const VerdictEntry& verdict) {
  const auto abort = [&](const std::string& why) {
    Fail(WithServer(parts_.transport, server, absl::AbortedError(why)));
  };
  switch (verdict.kind) {
    case PushVerdict::STALE:
      return abort("the job's state was lost: it is of another generation now");
    case PushVerdict::FENCED:
      return Fail(absl::AbortedError(absl::StrCat("another process has taken worker ",
                                                  parts_.options.worker.value, "'s number")));
    case PushVerdict::EARLY:
      return abort(absl::StrCat("shard ", verdict.shard.value, " is at step ",
                                verdict.frontier.value, ", too far behind for a push of step ",
                                verdict.step.value, ": its state was lost"));
    case PushVerdict::ACCEPT:
    case PushVerdict::REPEAT:
    case PushVerdict::LATE:
    case PushVerdict::REFUSED:
      break;
    default:
      return abort(absl::StrCat("verdict ", verdict.kind, ": want 1 to 7"));
  }
  const std::optional<PushEntry> push =
      peers_[server.value].outbox.TakeVerdict(verdict.shard, verdict.step);
  if (!push.has_value()) return;  // judged before: the push or its verdict came twice
  CountVerdict(verdict);
  if (parts_.tuner != nullptr) {
    parts_.tuner->meter().Judged(push->payload.size(), parts_.loop->Now());
  }
  if (verdict.kind == PushVerdict::ACCEPT) {
    parts_.encoder.Accepted(*push);
    PutBack(put_backs_.Accepted(*push));
  }
  if (verdict.kind == PushVerdict::LATE) {
    if (absl::Status s = parts_.encoder.Late(*push); !s.ok()) return Fail(std::move(s));
  }
  verdicts_.Add(verdict.kind == PushVerdict::LATE, verdict.frontier);
  if (verdicts_.complete()) FinishStep();
}

void Exchange::CountVerdict(const VerdictEntry& verdict) {
  Report& report = parts_.report;
  if (verdict.again || verdict.kind == PushVerdict::REPEAT) {
    report.Count(WorkerCounters::kRepeatedPushesFieldNumber);
  }
  if (verdict.kind == PushVerdict::ACCEPT) report.Count(WorkerCounters::kAcceptedPushesFieldNumber);
  if (verdict.kind == PushVerdict::LATE) report.Count(WorkerCounters::kLatePushesFieldNumber);
  if (verdict.kind == PushVerdict::REFUSED) report.Count(WorkerCounters::kRefusedPushesFieldNumber);
}

void Exchange::FinishStep() {
  if (parts_.tuner != nullptr) Tune();
  const Step next = verdicts_.next();
  if (next > verdicts_.step() + 1) {
    parts_.report.Count(WorkerCounters::kJumpedStepsFieldNumber);
    reading_ = next;
    for (uint32_t s = 0; s < parts_.partition.shard_count(); ++s) {
      parts_.rendezvous.Expect(ShardId{s});
      OutboxOf(ShardId{s}).Read(ShardId{s}, next);
    }
    for (Peer& peer : peers_) peer.link->Pump();
  }
  parts_.rendezvous.Judged(next);
}

void Exchange::Tune() {
  if (!parts_.tuner->EndStep()) return;
  for (const GroupCodec& group : parts_.tuner->choices()) {
    LOG(INFO) << "from step " << verdicts_.step() + 1 << " on " << group.group << " are pushed in "
              << group.codec << ": " << group.reason;
  }
  parts_.report.set_choices(parts_.tuner->choices());
}

}  // namespace thinwire::client
