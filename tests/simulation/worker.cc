#include "tests/simulation/worker.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/join_leave.h"
#include "server/core/effects.h"

namespace thinwire::simulation {
namespace {

constexpr uint64_t kResendTicks = 20;
constexpr uint64_t kHeartbeatTicks = 8;
// Longer than a lease, because the lead answers a Join only when the lease of an earlier process
// has ended.
constexpr uint64_t kCallTicks = 120;
constexpr size_t kSavedStates = 3;

double Sum(std::span<const float> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

ClientOptions OptionsOf(const Job& job, WorkerId worker) {
  ClientOptions options;
  options.job = job.name;
  options.worker = worker;
  options.worker_count = job.rule.workers;
  options.server_count = job.server_count;
  options.shard_size = kLeastShardSize;
  options.push = job.push;
  if (job.publishes()) options.pull = std::nullopt;
  return options;
}

Mass MassOfPush(const PushEntry& push) {
  return MassOf(push.payload, push.examples, push.late_examples);
}

uint64_t Ticks(absl::Duration duration) { return static_cast<uint64_t>(duration / kTick) + 1; }

}  // namespace

std::vector<float> SeedValues(uint32_t tensor) {
  std::vector<float> values(kShardValues);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(tensor) + 0.5f * static_cast<float>(i);
  }
  return values;
}

Worker::Link::Link(const Job& job, const Plan& plan, ServerId server, absl::Time now)
    : server(server),
      queue(job.partition->ShardsOf(server)),
      backoff(plan.worker, server),
      liveness(plan.silence, now) {}

Worker::Worker(const Shared& shared, const Plan& plan, uint64_t now)
    : shared_(shared),
      plan_(plan),
      now_(now),
      last_run_(now),
      join_since_(now),
      replica_(*shared.job.partition) {
  std::vector<std::vector<float>> seeds;
  for (uint32_t i = 0; i < shared.job.shard_count; ++i) seeds.push_back(SeedValues(i));
  const std::vector<std::span<const float>> tensors(seeds.begin(), seeds.end());
  replica_.Fill(tensors).IgnoreError();
  MakeEncoder();
  StartJoin();
}

void Worker::Trace(const std::string& text) const {
  if (shared_.trace == nullptr) return;
  shared_.trace(absl::StrCat("w", plan_.worker.value, "/", incarnation_.value, " ", text));
}

void Worker::MakeEncoder() {
  returns_.reset();
  encoder_ = client::PushEncoder::Make(*shared_.job.partition, OptionsOf(shared_.job, plan_.worker))
                 .value();
  returns_ = std::make_unique<client::GtopkReturns>(*shared_.job.partition, *encoder_, report_);
  unjudged_.assign(shared_.job.shard_count, false);
}

void Worker::StartJoin() {
  links_.clear();
  for (uint32_t s = 0; s < shared_.job.server_count; ++s) {
    links_.push_back(std::make_unique<Link>(shared_.job, plan_, ServerId{s}, TimeOf(now_)));
  }
  phase_ = Phase::kJoining;
  joined_count_ = 0;
}

void Worker::Send(const Link& link, uint64_t call, decltype(ToServer::body) body) const {
  shared_.send({link.server, plan_.process, call, std::move(body)});
}

void Worker::Tick(uint64_t now) {
  now_ = now;
  if (!running()) return;
  const uint64_t pause = now - std::exchange(last_run_, now);
  if (pause > kLeaseTicks / 2) {
    slept_ = slept_ || pause > kLeaseTicks;
    for (const auto& link : links_) link->liveness.Restart(TimeOf(now));
  }
  if (now % kHeartbeatTicks == 0) {
    for (const auto& link : links_) {
      if (!link->joined) continue;
      HeartbeatRequest request;
      request.set_worker(plan_.worker.value);
      request.set_incarnation(incarnation_.value);
      request.set_epoch(link->epoch.value);
      Send(*link, link->epoch.value, request);
    }
  }
  if (phase_ == Phase::kJoining) {
    Link& link = *links_[joined_count_];
    if (now >= link.call_again_at) CallJoin(link);
  } else if (phase_ == Phase::kLeaving) {
    Leave();
  } else {
    Continue();
  }
  SendQueued();
  GiveUpIfSilent();
}

void Worker::GiveUpIfSilent() {
  if (!running()) return;
  bool silent = phase_ == Phase::kJoining && TimeOf(now_) - TimeOf(join_since_) > plan_.silence;
  for (const auto& link : links_) {
    silent = silent || (link->joined && !link->left &&
                        link->liveness.OutageAt(TimeOf(now_), plan_.silence).has_value());
  }
  if (!silent) return;
  gave_up_ = true;
  Die();
}

void Worker::CallJoin(Link& link) {
  JoinRequest request =
      client::MakeJoinRequest(OptionsOf(shared_.job, plan_.worker), *shared_.job.partition);
  request.set_incarnation(incarnation_.value);
  request.set_run(run_.value);
  link.call = ++last_call_;
  link.call_again_at = now_ + kCallTicks;
  Send(link, link.call, request);
}

void Worker::Receive(uint64_t now, const ToWorker& message) {
  now_ = now;
  if (!running()) return;
  Link& link = *links_[message.server.value];
  if (const auto* frame = std::get_if<ByteChain>(&message.body)) {
    OnFrame(link, *frame);
  } else if (const auto* heartbeat = std::get_if<HeartbeatReply>(&message.body)) {
    // Ignores a reply to a heartbeat that was sent before the link joined the server again.
    if (link.joined && message.call == link.epoch.value) OnHeartbeat(link, *heartbeat);
  } else if (message.call == link.call && link.call != 0) {
    link.call = 0;
    if (const auto* join = std::get_if<absl::StatusOr<JoinReply>>(&message.body)) {
      OnJoin(link, *join);
    } else {
      link.left = true;
    }
  }
  SendQueued();
}

void Worker::OnJoin(Link& link, const absl::StatusOr<JoinReply>& reply) {
  if (!reply.ok()) {
    if (!absl::IsUnavailable(reply.status())) {
      refusal_ = std::string(reply.status().message());
      return Die();
    }
    link.call_again_at = now_ + Ticks(link.backoff.Next());
    return;
  }
  link.backoff.Reset();
  link.liveness.CallAnswered(TimeOf(now_));
  if (phase_ != Phase::kJoining) return OnRejoined(link, *reply);
  link.joined = true;
  link.epoch = Epoch{reply->epoch()};
  link.generation = Generation{reply->generation()};
  link.reply = *reply;
  incarnation_ = Incarnation{reply->incarnation()};
  run_ = RunId{reply->run()};
  if (++joined_count_ == links_.size()) OnJoinedAll();
}

void Worker::OnJoinedAll() {
  std::vector<JoinReply> replies;
  for (const auto& link : links_) replies.push_back(link->reply);
  const auto differs = [this](const auto& link) {
    return link->generation != links_[0]->generation;
  };
  if (shared_.job.by_round() && std::ranges::any_of(links_, differs)) {
    // A server has not rolled back yet, or a rollback began during the Joins.
    const uint64_t again = now_ + Ticks(links_[0]->backoff.Next());
    StartJoin();
    links_[0]->call_again_at = again;
    return;
  }
  const Step first = client::StartingStep(replies);
  RestoreResiduals(replies, first);
  rolled_back_ = false;
  BeginStep(first, /*read=*/true);
}

Worker::Choice Worker::ChooseSaved(const std::vector<JoinReply>& replies) const {
  Choice choice = {.restored = std::vector<bool>(shared_.job.shard_count, false)};
  if (shared_.saved.empty()) return choice;
  // The reply to a Join came so late that another process has replaced this one, which is fenced.
  // After a rollback, the servers may have forgotten the other process.
  if (!rolled_back_ && shared_.ledgers[0].newest(plan_.worker) > incarnation_) return choice;
  if (shared_.job.broken == BrokenRule::kResidualOfAnotherStep) {
    choice.saved = &shared_.saved.rbegin()->second;
    choice.restored.flip();
    return choice;
  }
  std::vector<client::SavedPoint> files;
  for (const auto& [step, saved] : shared_.saved) {
    files.push_back({.path = absl::StrCat(step.value), .point = saved.residuals.point});
  }
  client::ResidualStart start = client::DecideResidualStart(
      "residuals", files, replies, *shared_.job.partition, /*after_rollback=*/rolled_back_);
  for (const auto& [step, saved] : shared_.saved) {
    if (start.path == absl::StrCat(step.value)) choice.saved = &saved;
  }
  if (choice.saved != nullptr) choice.restored = std::move(start.restored);
  return choice;
}

void Worker::RestoreResiduals(const std::vector<JoinReply>& replies, Step first) {
  const Choice choice = ChooseSaved(replies);
  const SavedState* const saved = choice.saved;
  if (rolled_back_ || saved != nullptr) MakeEncoder();
  for (uint32_t s = 0; s < shared_.job.shard_count; ++s) {
    ShardLedger& ledger = shared_.ledgers[s];
    if (choice.restored[s]) {
      Mass account = saved->accounts[s];
      if (!shared_.job.by_round()) {
        account -=
            ledger.UndoneSince(plan_.worker, saved->undone_counts[s], saved->residuals.point.step);
      }
      ledger.Reset(plan_.worker, incarnation_, account);
    } else if (rolled_back_) {
      ledger.Reset(plan_.worker, incarnation_, std::nullopt);
    } else {
      ledger.CloseUnanswered(plan_.worker, incarnation_);
    }
  }
  if (saved != nullptr) {
    Trace(absl::StrCat("restores the residuals of step ", saved->residuals.point.step.value));
    client::SavedResiduals residuals = saved->residuals;
    for (uint32_t s = 0; s < shared_.job.shard_count; ++s) {
      if (!choice.restored[s]) residuals.shards[s] = {};
    }
    encoder_->Restore(std::move(residuals)).IgnoreError();
    ++restored_count_;
  }
  // Later residuals belong to steps that the job has not reached.
  shared_.saved.erase(shared_.saved.upper_bound(first), shared_.saved.end());
}

void Worker::SaveResiduals() {
  // The newest process of a worker holds a lock on the saved states.
  if (shared_.ledgers[0].newest(plan_.worker) > incarnation_) return;
  SavedState state;
  state.generation = links_[0]->generation;
  state.residuals.point = {run_, step_};
  const auto residuals = encoder_->residuals().value();
  for (uint32_t s = 0; s < residuals.size(); ++s) {
    const client::ShardResidualsView& view = residuals[s];
    state.residuals.shards.push_back({{view.residual.begin(), view.residual.end()},
                                      {view.momentum.begin(), view.momentum.end()},
                                      view.late_examples});
    state.accounts.push_back(shared_.ledgers[s].AccountOf(plan_.worker, incarnation_));
    state.undone_counts.push_back(shared_.ledgers[s].undone_count());
  }
  shared_.saved[step_] = std::move(state);
  if (shared_.saved.size() > kSavedStates) shared_.saved.erase(shared_.saved.begin());
}

void Worker::OnHeartbeat(Link& link, const HeartbeatReply& reply) {
  if (reply.fenced()) return Die();
  link.liveness.CallAnswered(TimeOf(now_));
  const Generation generation{reply.generation()};
  if (Epoch{reply.epoch()} != link.epoch) {
    if (phase_ == Phase::kJoining) return StartJoin();
    if (shared_.job.by_round() && generation > link.generation) return StartRollback();
    // A server that awaits its rollback refuses the Join.
    if (phase_ != Phase::kLeaving && now_ >= link.call_again_at) CallJoin(link);
    return;
  }
  if (link.server == ServerId{0}) {
    slept_ = false;
    if (reply.has_checkpoint_step()) checkpoint_step_ = Step{reply.checkpoint_step()};
  }
}

void Worker::OnRejoined(Link& link, const JoinReply& reply) {
  link.call_again_at = 0;
  const Generation generation{reply.generation()};
  if (generation > link.generation && shared_.job.by_round()) return StartRollback();
  Trace(absl::StrCat("joins s", link.server.value, " again"));
  link.epoch = Epoch{reply.epoch()};
  if (generation > link.generation) {
    link.generation = generation;
    for (const ShardState& shard : reply.shards()) ReadAgain(link, shard);
  }
  link.queue.ResendUnanswered();
}

// Continues with a shard of a server that went on alone from an earlier state.
void Worker::ReadAgain(Link& link, const ShardState& state) {
  const ShardId shard{state.shard()};
  replica_.Forget(shard);
  if (phase_ == Phase::kLeaving) return;
  if (std::optional<PushEntry> push = link.queue.FinishPush(shard, step_)) {
    link.held[shard] = *std::move(push);
  }
  const auto held = link.held.find(shard);
  if (held == link.held.end()) {
    link.queue.Read(shard, phase_ == Phase::kPushing ? step_ + 1 : step_);
  } else if (state.predecessor_next() <= step_.value) {
    // The step may begin only when the shard allows it again. Then the push follows.
    link.queue.Read(shard, step_);
  } else {
    // The earlier state has judged the push already, and would ignore a read for its step.
    link.queue.Push(std::move(held->second));
    link.held.erase(held);
  }
}

void Worker::StartRollback() {
  if (slept_) return Die();  // another process may have this number and incarnation
  Trace("follows a rollback");
  ReportUnanswered();
  unreturned_.clear();
  frontiers_.clear();
  checkpoint_step_.reset();
  for (uint32_t s = 0; s < shared_.job.shard_count; ++s) replica_.Forget(ShardId{s});
  rolled_back_ = true;
  join_since_ = now_;
  StartJoin();
}

void Worker::OnFrame(Link& link, const ByteChain& bytes) {
  const ServerFrame frame = ParseServerFrame(bytes).value();
  if (!link.joined || frame.epoch != link.epoch) return;
  link.liveness.MessageReceived(TimeOf(now_));
  if (phase_ == Phase::kJoining) return;
  for (const VerdictEntry& verdict : frame.verdicts) {
    OnVerdict(link, verdict);
    if (!running()) return;
  }
  for (const ParametersEntry& entry : frame.parameters) OnParameters(link, entry);
  for (const WaitingEntry& entry : frame.waits) {
    if (entry.seed) link.queue.Seed(entry.shard);
  }
  if (phase_ != Phase::kLeaving) Continue();
}

GradientId Worker::IdOf(const PushEntry& push) const {
  return {plan_.worker, incarnation_, push.step};
}

void Worker::OnVerdict(Link& link, const VerdictEntry& entry) {
  const auto verdict = static_cast<Verdict>(entry.kind);
  // A shard also fences a duplicate message that arrives after this process has left.
  if (verdict == Verdict::kFenced) {
    if (phase_ != Phase::kLeaving) Die();
    return;
  }
  const std::optional<PushEntry> push = link.queue.FinishPush(entry.shard, entry.step);
  if (!push.has_value()) return;
  ShardLedger& ledger = shared_.ledgers[entry.shard.value];
  if (push->examples > 0) ledger.CheckVerdict(IdOf(*push), verdict);
  jump_ = std::max(jump_, entry.frontier);
  if (verdict == Verdict::kLate) {
    late_ = true;
    encoder_->Late(*push).IgnoreError();
    return;
  }
  encoder_->Accepted(*push);
  const uint64_t lost_before = lost_returns();
  const bool keeps = returns_->Keeps(entry.shard) && push->examples > 0;
  returns_->OnAccepted(*push).IgnoreError();
  if (!keeps) return;
  if (frontiers_[entry.shard] > push->step) return CountReturn(*push, lost_before);
  if (const auto older = unreturned_.find(entry.shard); older != unreturned_.end()) {
    CountReturn(older->second, lost_before);
  }
  unreturned_[entry.shard] = *push;
}

// Tells the ledger if the unselected values of PUSH were lost since LOST_BEFORE returns were lost.
void Worker::CountReturn(const PushEntry& push, uint64_t lost_before) {
  if (lost_returns() == lost_before) return;
  shared_.ledgers[push.shard.value].AddUnanswered(IdOf(push), MassOfPush(push));
}

void Worker::OnParameters(Link& link, const ParametersEntry& entry) {
  client::SendQueue& queue = link.queue;
  const bool awaited = entry.more ? queue.AwaitsParameters(entry.shard, entry.step)
                                  : queue.FinishRead(entry.shard, entry.step);
  if (!awaited) return;
  const auto merged = replica_.Merge(entry);
  ShardLedger& ledger = shared_.ledgers[entry.shard.value];
  ledger.Require(merged.ok() && *merged != client::Replica::Merged::kDiffers,
                 "a replica cannot use its parameters");
  if (!merged.ok()) return;
  if (*merged != client::Replica::Merged::kDone) {
    replica_.Forget(entry.shard);
    queue.Read(entry.shard, entry.step);
    return;
  }
  if (entry.more) return;
  ledger.CheckReplica(link.generation, entry.version,
                      replica_.tensor(shared_.job.TensorOf(entry.shard)));
  const uint64_t lost_before = lost_returns();
  returns_->OnParameters(entry).IgnoreError();
  frontiers_[entry.shard] = entry.frontier;
  if (const auto push = unreturned_.find(entry.shard); push != unreturned_.end()) {
    CountReturn(push->second, lost_before);
    unreturned_.erase(push);
  }
  if (const auto push = link.held.find(entry.shard); push != link.held.end()) {
    queue.Push(push->second);
    link.held.erase(push);
  }
}

void Worker::BeginStep(Step step, bool read) {
  step_ = step;
  late_ = false;
  jump_ = Step{0};
  phase_ = step_ >= shared_.job.last ? Phase::kLeaving : Phase::kReading;
  if (!read || phase_ != Phase::kReading) return;
  for (uint32_t s = 0; s < shared_.job.shard_count; ++s) {
    LinkOf(ShardId{s}).queue.Read(ShardId{s}, step_);
  }
}

void Worker::Continue() {
  if (phase_ == Phase::kReading && HasParameters()) {
    phase_ = Phase::kComputing;
    until_ = now_ + 1 + shared_.random.Below(plan_.compute_ticks);
  } else if (phase_ == Phase::kComputing && now_ >= until_) {
    Compute();
  } else if (phase_ == Phase::kPushing && HasVerdicts()) {
    const Step following = step_ + 1;
    BeginStep(late_ ? std::max(following, jump_) : following, late_);
  }
}

void Worker::Compute() {
  const bool aligned = shared_.job.durability == Durability::kCheckpoint;
  if (aligned ? checkpoint_step_ == step_ : shared_.random.Percent(10)) SaveResiduals();
  phase_ = Phase::kPushing;
  const bool nothing = shared_.random.Percent(5);
  std::vector<std::vector<float>> gradients;
  for (uint32_t s = 0; s < shared_.job.shard_count; ++s) {
    std::vector<float>& gradient = gradients.emplace_back(kShardValues);
    // Whole numbers, so that sums are exact in any order.
    for (int i = 0; i < 6; ++i) {
      gradient[shared_.random.Below(kShardValues)] +=
          static_cast<float>(1 + shared_.random.Below(9));
    }
  }
  const std::vector<std::span<const float>> tensors(gradients.begin(), gradients.end());
  for (uint32_t s = 0; s < shared_.job.shard_count; ++s) {
    const ShardId shard{s};
    PushEntry push = {.shard = shard,
                      .step = step_,
                      .examples = nothing ? 0 : 1 + static_cast<uint32_t>(shared_.random.Below(3)),
                      .computed_version = replica_.held_version(shard)};
    if (!nothing) {
      shared_.ledgers[s].AddProduced(plan_.worker, incarnation_,
                                     {Sum(gradients[shared_.job.TensorOf(shard)]), push.examples});
    }
    encoder_->Begin(push, {.segments = shared_.job.partition->segments(shard), .tensors = tensors})
        .IgnoreError();
    SendPush(LinkOf(shard), std::move(encoder_->Finish()->push));
  }
}

void Worker::SendPush(Link& link, PushEntry push) {
  if (link.queue.HasPendingRead(push.shard)) {
    link.held[push.shard] = std::move(push);
  } else {
    link.queue.Push(std::move(push));
  }
}

void Worker::SendQueued() {
  if (!running() || phase_ == Phase::kJoining || phase_ == Phase::kLeaving) return;
  for (const auto& link : links_) {
    const bool waits = !link->queue.unanswered().empty() || !link->queue.unjudged().empty();
    if (waits && !trusts_network_ && now_ >= link->resend_at) link->queue.ResendUnanswered();
    if (!link->queue.has_unsent()) continue;
    WorkerFrame frame = {.worker = plan_.worker,
                         .incarnation = incarnation_,
                         .generation = link->generation,
                         .epoch = link->epoch};
    const auto pull = OptionsOf(shared_.job, plan_.worker).pull;
    if (!link->queue.FillMessage(replica_, pull, frame)) continue;
    link->resend_at = now_ + kResendTicks;
    Send(*link, 0, WriteFrame(frame));
  }
}

void Worker::Leave() {
  for (const auto& link : links_) {
    if (link->left || now_ < link->call_again_at) continue;
    LeaveRequest request;
    request.set_worker(plan_.worker.value);
    request.set_incarnation(incarnation_.value);
    request.set_run(run_.value);
    link->call = ++last_call_;
    link->call_again_at = now_ + kResendTicks;
    Send(*link, link->call, request);
  }
  if (!std::ranges::all_of(links_, [](const auto& link) { return link->left; })) return;
  Report();
  phase_ = Phase::kOver;
}

void Worker::TrustNetwork() {
  trusts_network_ = true;
  for (const auto& link : links_) link->queue.ResendUnanswered();
}

void Worker::Die() {
  if (!running()) return;
  Trace(gave_up_ ? "gives up" : "ends");
  Report();
  phase_ = Phase::kDead;
}

void Worker::ReportUnanswered() {
  const auto report = [&](const PushEntry& push) {
    if (push.examples == 0) return;
    shared_.ledgers[push.shard.value].AddUnanswered(IdOf(push), MassOfPush(push));
    unjudged_[push.shard.value] = true;
  };
  for (const auto& link : links_) {
    for (const ShardId shard : link->queue.unjudged()) {
      report(*link->queue.FinishPush(shard, step_));
    }
    for (const auto& [shard, push] : link->held) report(push);
  }
  for (const auto& [shard, push] : unreturned_) {
    if (push.examples == 0) continue;
    shared_.ledgers[shard.value].AddUnanswered(IdOf(push), MassOfPush(push));
  }
}

void Worker::Report() {
  ReportUnanswered();
  const auto residuals = encoder_->residuals().value();
  for (uint32_t s = 0; s < residuals.size(); ++s) {
    const uint32_t late_examples = unjudged_[s] ? 0 : residuals[s].late_examples;
    shared_.ledgers[s].AddEnded(plan_.worker, incarnation_,
                                {Sum(residuals[s].residual), late_examples});
  }
}

bool Worker::HasParameters() const {
  return std::ranges::all_of(links_,
                             [](const auto& link) { return link->queue.unanswered().empty(); });
}

bool Worker::HasVerdicts() const {
  return std::ranges::all_of(links_, [](const auto& link) {
    return link->queue.unjudged().empty() && link->held.empty();
  });
}

std::string Worker::Describe() const {
  constexpr const char* kPhases[] = {"joining", "reading", "computing", "pushing",
                                     "leaving", "over",    "dead"};
  std::string text = absl::StrCat("w", plan_.worker.value, "/", incarnation_.value, " ",
                                  kPhases[static_cast<int>(phase_)], " step ", step_.value);
  for (const auto& link : links_) {
    absl::StrAppend(&text, link->queue.Awaited().empty() ? "" : "; ", link->queue.Awaited());
  }
  return text;
}

}  // namespace thinwire::simulation
