#include "server/core/testing/sim_client.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

constexpr uint64_t kResendTicks = 20;
constexpr uint64_t kHeartbeatTicks = 8;

}  // namespace

void SimClient::Tick(uint64_t now, Control control, Wire<ToShard>& wire) {
  if (!running()) return;
  for (uint32_t shard = 0; now % kHeartbeatTicks == 0 && shard < called_; ++shard) {
    wire.Send(now, {shard, plan_.worker, plan_.incarnation, std::nullopt});
  }
  if (phase_ == Phase::kLeaving) return LeaveNext(control);
  if (phase_ == Phase::kJoining) {
    JoinNext(control);
    if (called_ < shards_.size()) return;
  }
  if (now >= resend_at_ && phase_ == Phase::kReading) SendReads(now, wire);
  if (now >= resend_at_ && phase_ == Phase::kPushing) SendPushes(now, wire);
  GoOn(now, wire);
}

// One shard at a time: the others go on in between.
void SimClient::JoinNext(Control control) {
  if (dice_.Percent(30)) return;
  const Effects effects = control(called_, JoinEvent{plan_.worker, plan_.incarnation});
  shards_[called_].join = effects.join.value();
  ++called_;
}

void SimClient::LeaveNext(Control control) {
  if (called_ > 0 && dice_.Percent(70)) {
    control(--called_, LeaveEvent{plan_.worker, plan_.incarnation});
  }
  if (called_ > 0) return;
  Settle();
  phase_ = Phase::kOver;
}

void SimClient::GoOn(uint64_t now, Wire<ToShard>& wire) {
  if (phase_ == Phase::kJoining) {
    Step start;
    bool open = false;
    for (const PerShard& shard : shards_) open = open || shard.join.open;
    for (const PerShard& shard : shards_) {
      const uint64_t ahead = open && plan_.by_round ? 1 : 0;
      start = std::max({start, shard.join.predecessor_next, shard.join.frontier + ahead});
    }
    BeginStep(now, start, wire, true);
  } else if (phase_ == Phase::kReading && HasParameters()) {
    phase_ = Phase::kComputing;
    until_ = now + 1 + dice_.Below(plan_.compute_ticks);
  } else if (phase_ == Phase::kComputing && now >= until_) {
    ComputeAndPush(now, wire);
  } else if (phase_ == Phase::kPushing && HasVerdicts()) {
    const Step following = step_ + 1;
    BeginStep(now, late_ ? std::max(following, jump_) : following, wire, late_);
  }
}

void SimClient::BeginStep(uint64_t now, Step step, Wire<ToShard>& wire, bool read) {
  step_ = step;
  late_ = false;
  jump_ = Step{0};
  phase_ = step_ >= plan_.last ? Phase::kLeaving : Phase::kReading;
  WaitToResend(now);
  if (read && phase_ == Phase::kReading) SendReads(now, wire);
}

void SimClient::WaitToResend(uint64_t now) {
  resend_at_ = trusts_wire_ ? std::numeric_limits<uint64_t>::max() : now + kResendTicks;
}

void SimClient::SendReads(uint64_t now, Wire<ToShard>& wire) {
  WaitToResend(now);
  for (uint32_t i = 0; i < shards_.size(); ++i) SendRead(now, wire, i, step_);
}

void SimClient::SendRead(uint64_t now, Wire<ToShard>& wire, uint32_t shard, Step step) {
  const PerShard& s = shards_[shard];
  if (s.answered.has_value() && *s.answered >= step) return;
  if (!s.join.seeded)
    Send(now, wire, shard, SeedEvent{Fp32Payload(std::vector<float>(kSimValues))});
  ReadEvent read;
  read.worker = plan_.worker;
  read.incarnation = plan_.incarnation;
  read.step = step;
  read.form = FormOf(s);
  Send(now, wire, shard, read);
}

// Where the verdict has come, what is still owed is the parameters.
void SimClient::SendPushes(uint64_t now, Wire<ToShard>& wire) {
  WaitToResend(now);
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].push.has_value()) {
      Send(now, wire, i, *shards_[i].push);
    } else {
      SendRead(now, wire, i, step_ + 1);
    }
  }
}

void SimClient::ComputeAndPush(uint64_t now, Wire<ToShard>& wire) {
  phase_ = Phase::kPushing;
  const bool nothing = dice_.Percent(5);
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    PerShard& shard = shards_[i];
    PushEvent push;
    push.worker = plan_.worker;
    push.incarnation = plan_.incarnation;
    push.step = step_;
    push.computed_version = shard.held;
    push.read_form = FormOf(shard);
    if (!nothing) {
      const uint64_t amount = 1 + dice_.Below(9);
      books_[i].Produced(amount);
      push.examples = 1 + static_cast<uint32_t>(dice_.Below(3));
      push.late_examples = static_cast<uint32_t>(shard.late_examples);
      std::vector<float> gradient(kSimValues);
      gradient[0] = static_cast<float>(shard.residual + amount);
      gradient[1] = static_cast<float>(dice_.Below(1 << 16));
      gradient[2 + dice_.Below(kSimValues - 2)] = static_cast<float>(dice_.Below(100));
      push.payload = dice_.Percent(70) ? SparsePayload(gradient) : Fp32Payload(gradient);
      shard.residual = 0;
    }
    shard.push = push;
  }
  SendPushes(now, wire);
}

void SimClient::Hear(const ToWorker& letter) {
  if (!running()) return;
  PerShard& shard = shards_[letter.shard];
  if (letter.judgement.has_value()) {
    HearVerdict(shard, books_[letter.shard], *letter.judgement);
  } else if (letter.step == awaited() && shard.answered != letter.step) {
    shard.answered = letter.step;
    shard.held = letter.version;
    if (plan_.reads_deltas) HearDeltas(shard, books_[letter.shard], letter.deltas);
  }
}

void SimClient::HearDeltas(PerShard& shard, ShardBooks& books, const DeltaChain& deltas) {
  const std::string wrong = shard.replica.Apply(deltas);
  books.Demand(wrong.empty(), wrong);
  shard.held = shard.replica.held().value_or(Version{0});
  books.Replicated(shard.held, shard.replica.values());
}

ReadForm SimClient::FormOf(const PerShard& shard) const {
  return plan_.reads_deltas ? shard.replica.form() : ReadForm();
}

void SimClient::HearVerdict(PerShard& shard, ShardBooks& books, const Judgement& judgement) {
  // What was sent twice may come after the leave, and is fenced too: that is no successor.
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
  Settle();
  phase_ = Phase::kDead;
}

void SimClient::Settle() {
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    const PerShard& shard = shards_[i];
    books_[i].LeftInResidual(shard.residual);
    if (shard.push.has_value() && shard.push->examples != 0) {
      books_[i].DiedWithPush(*shard.push);
    } else {
      books_[i].LateExamplesOwed(shard.late_examples);
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

void SimClient::Send(uint64_t now, Wire<ToShard>& wire, uint32_t shard, const Event& event) {
  wire.Send(now, {shard, plan_.worker, plan_.incarnation, event});
}

std::string SimClient::Describe() const {
  constexpr const char* kPhases[] = {"joining", "reading", "computing", "pushing",
                                     "leaving", "over",    "dead"};
  return absl::StrCat("w", plan_.worker.value, "/", plan_.incarnation.value, " ",
                      kPhases[static_cast<int>(phase_)], " step ", step_.value);
}

}  // namespace thinwire
