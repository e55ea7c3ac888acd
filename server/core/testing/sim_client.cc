#include "server/core/testing/sim_client.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/value_hash.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr uint64_t kResendTicks = 20;
constexpr uint64_t kHeartbeatTicks = 8;

}  // namespace

std::string SimReplica::Apply(const DeltaChain& chain) {
  if (chain.empty()) return "an empty answer";
  for (const auto& delta : chain) {
    if (std::string wrong = Apply(*delta); !wrong.empty()) return wrong;
  }
  return "";
}

std::string SimReplica::Apply(const PublishedDelta& delta) {
  if (delta.kind == PublishedDelta::Kind::kFull) {
    values_.resize((delta.payload.size() - 1) / sizeof(float));
  } else if (delta.base != held_) {
    return absl::StrCat("a delta from version ", delta.base.value,
                        ", but the replica holds another one");
  }
  const bool same = delta.kind != PublishedDelta::Kind::kFull && delta.base == delta.version;
  held_ = delta.version;
  if (same) return "";
  if (delta.kind == PublishedDelta::Kind::kUlpDelta) {
    const auto changes = UlpDelta::Check(delta.payload, values_.size());
    if (!changes.ok()) return std::string(changes.status().message());
    changes->Apply(values_);
  } else {
    const auto payload = CheckPayload(delta.payload, values_.size());
    if (!payload.ok()) return std::string(payload.status().message());
    if (delta.kind == PublishedDelta::Kind::kAdd) {
      DecodePayloadAdd(*payload, 1.0f, values_);
    } else {
      DecodePayload(*payload, values_);
    }
  }
  if (delta.hash == 0 || delta.hash == HashValues(values_)) return "";
  return absl::StrCat("version ", delta.version.value, " has another hash");
}

void SimClient::Tick(uint64_t now, Control control, SimNetwork<MessageToShard>& network) {
  if (!running()) return;
  for (uint32_t shard = 0; now % kHeartbeatTicks == 0 && shard < joined_count_; ++shard) {
    network.Send(now, {shard, plan_.worker, plan_.incarnation, std::nullopt});
  }
  if (phase_ == Phase::kLeaving) return LeaveNext(control);
  if (phase_ == Phase::kJoining) {
    JoinNext(control);
    if (joined_count_ < shards_.size()) return;
  }
  if (now >= resend_at_ && phase_ == Phase::kReading) SendReads(now, network);
  if (now >= resend_at_ && phase_ == Phase::kPushing) SendPushes(now, network);
  Continue(now, network);
}

// Joins at most one shard per call, so that events of other processes occur between two joins.
void SimClient::JoinNext(Control control) {
  if (random_.Percent(30)) return;
  const Effects effects = control(joined_count_, JoinEvent{plan_.worker, plan_.incarnation});
  shards_[joined_count_].join = effects.join.value();
  ++joined_count_;
}

void SimClient::LeaveNext(Control control) {
  if (joined_count_ > 0 && random_.Percent(70)) {
    control(--joined_count_, LeaveEvent{plan_.worker, plan_.incarnation});
  }
  if (joined_count_ > 0) return;
  ReportToLedgers();
  phase_ = Phase::kOver;
}

void SimClient::Continue(uint64_t now, SimNetwork<MessageToShard>& network) {
  if (phase_ == Phase::kJoining) {
    Step start;
    bool open = false;
    for (const PerShard& shard : shards_) open = open || shard.join.open;
    for (const PerShard& shard : shards_) {
      const uint64_t ahead = open && plan_.by_round ? 1 : 0;
      start = std::max({start, shard.join.predecessor_next, shard.join.frontier + ahead});
    }
    BeginStep(now, start, network, true);
  } else if (phase_ == Phase::kReading && HasParameters()) {
    phase_ = Phase::kComputing;
    until_ = now + 1 + random_.Below(plan_.compute_ticks);
  } else if (phase_ == Phase::kComputing && now >= until_) {
    ComputeAndPush(now, network);
  } else if (phase_ == Phase::kPushing && HasVerdicts()) {
    const Step following = step_ + 1;
    BeginStep(now, late_ ? std::max(following, jump_) : following, network, late_);
  }
}

void SimClient::BeginStep(uint64_t now, Step step, SimNetwork<MessageToShard>& network, bool read) {
  step_ = step;
  late_ = false;
  jump_ = Step{0};
  phase_ = step_ >= plan_.last ? Phase::kLeaving : Phase::kReading;
  WaitToResend(now);
  if (read && phase_ == Phase::kReading) SendReads(now, network);
}

void SimClient::WaitToResend(uint64_t now) {
  resend_at_ = trusts_network_ ? std::numeric_limits<uint64_t>::max() : now + kResendTicks;
}

void SimClient::SendReads(uint64_t now, SimNetwork<MessageToShard>& network) {
  WaitToResend(now);
  for (uint32_t i = 0; i < shards_.size(); ++i) SendRead(now, network, i, step_);
}

void SimClient::SendRead(uint64_t now, SimNetwork<MessageToShard>& network, uint32_t shard,
                         Step step) {
  const PerShard& s = shards_[shard];
  if (s.answered.has_value() && *s.answered >= step) return;
  if (!s.join.seeded)
    Send(now, network, shard, SeedEvent{Fp32Payload(std::vector<float>(kSimValues))});
  ReadEvent read;
  read.worker = plan_.worker;
  read.incarnation = plan_.incarnation;
  read.step = step;
  read.form = FormOf(s);
  Send(now, network, shard, read);
}

// Sends each push that has no verdict yet. For each shard whose push has a verdict, sends a read
// for the next step if the shard's parameters have not arrived.
void SimClient::SendPushes(uint64_t now, SimNetwork<MessageToShard>& network) {
  WaitToResend(now);
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].push.has_value()) {
      Send(now, network, i, *shards_[i].push);
    } else {
      SendRead(now, network, i, step_ + 1);
    }
  }
}

void SimClient::ComputeAndPush(uint64_t now, SimNetwork<MessageToShard>& network) {
  phase_ = Phase::kPushing;
  const bool nothing = random_.Percent(5);
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    PerShard& shard = shards_[i];
    PushEvent push;
    push.worker = plan_.worker;
    push.incarnation = plan_.incarnation;
    push.step = step_;
    push.computed_version = shard.held;
    push.read_form = FormOf(shard);
    if (!nothing) {
      const uint64_t amount = 1 + random_.Below(9);
      ledgers_[i].AddProduced(amount);
      push.examples = 1 + static_cast<uint32_t>(random_.Below(3));
      push.late_examples = static_cast<uint32_t>(shard.late_examples);
      std::vector<float> gradient(kSimValues);
      gradient[0] = static_cast<float>(shard.residual + amount);
      gradient[1] = static_cast<float>(random_.Below(1 << 16));
      gradient[2 + random_.Below(kSimValues - 2)] = static_cast<float>(random_.Below(100));
      push.payload = random_.Percent(70) ? SparsePayload(gradient) : Fp32Payload(gradient);
      shard.residual = 0;
    }
    shard.push = push;
  }
  SendPushes(now, network);
}

void SimClient::Receive(const MessageToWorker& message) {
  if (!running()) return;
  PerShard& shard = shards_[message.shard];
  if (message.judgement.has_value()) {
    ReceiveVerdict(shard, ledgers_[message.shard], *message.judgement);
  } else if (message.step == awaited() && shard.answered != message.step) {
    shard.answered = message.step;
    shard.held = message.version;
    if (plan_.reads_deltas) ReceiveDeltas(shard, ledgers_[message.shard], message.deltas);
  }
}

void SimClient::ReceiveDeltas(PerShard& shard, ShardLedger& ledger, const DeltaChain& deltas) {
  const std::string wrong = shard.replica.Apply(deltas);
  ledger.Require(wrong.empty(), wrong);
  shard.held = shard.replica.held().value_or(Version{0});
  ledger.CheckReplica(shard.held, shard.replica.values());
}

ReadForm SimClient::FormOf(const PerShard& shard) const {
  return plan_.reads_deltas ? shard.replica.form() : ReadForm();
}

void SimClient::ReceiveVerdict(PerShard& shard, ShardLedger& ledger, const Judgement& judgement) {
  // A shard also fences a duplicate message that arrives after this process has left. In that case
  // no newer process exists, so this process continues.
  if (judgement.verdict == Verdict::kFenced && phase_ != Phase::kLeaving) return Die();
  if (!shard.push.has_value() || shard.push->step != judgement.step) return;
  const PushEvent push = *shard.push;
  shard.push.reset();
  jump_ = std::max(jump_, judgement.frontier);
  if (judgement.verdict == Verdict::kLate) {
    late_ = true;
    if (push.examples == 0) return;
    shard.residual += static_cast<uint64_t>(Values(push.payload)[0]);
    shard.late_examples += push.examples;
  } else if (judgement.verdict == Verdict::kAccept && push.examples != 0) {
    shard.late_examples = 0;
  }
}

void SimClient::Die() {
  ReportToLedgers();
  phase_ = Phase::kDead;
}

void SimClient::ReportToLedgers() {
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    const PerShard& shard = shards_[i];
    ledgers_[i].AddResidual(shard.residual);
    if (shard.push.has_value() && shard.push->examples != 0) {
      ledgers_[i].AddUnanswered(*shard.push);
    } else {
      ledgers_[i].AddLateExamplesOwed(shard.late_examples);
    }
  }
}

bool SimClient::HasParameters() const {
  return std::all_of(shards_.begin(), shards_.end(), [this](const PerShard& shard) {
    return shard.answered.has_value() && *shard.answered >= step_;
  });
}

bool SimClient::HasVerdicts() const {
  return std::none_of(shards_.begin(), shards_.end(),
                      [](const PerShard& shard) { return shard.push.has_value(); });
}

void SimClient::Send(uint64_t now, SimNetwork<MessageToShard>& network, uint32_t shard,
                     const Event& event) {
  network.Send(now, {shard, plan_.worker, plan_.incarnation, event});
}

std::string SimClient::Describe() const {
  constexpr const char* kPhases[] = {"joining", "reading", "computing", "pushing",
                                     "leaving", "over",    "dead"};
  return absl::StrCat("w", plan_.worker.value, "/", plan_.incarnation.value, " ",
                      kPhases[static_cast<int>(phase_)], " step ", step_.value);
}

}  // namespace thinwire
