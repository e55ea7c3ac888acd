#include "tests/simulation/server.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "common/text/problems.h"
#include "server/durable/checkpoint.h"
#include "server/durable/event_log.h"
#include "server/durable/lead_file.h"
#include "server/durable/log_format.h"
#include "server/edge/lead/round_sum.h"
#include "server/edge/model/convert.h"

namespace thinwire::simulation {
namespace {

constexpr char kFolder[] = "state";
constexpr uint64_t kStartTimeoutTicks = 200;
constexpr uint64_t kNoticeTicks = 10;
constexpr uint64_t kReminderTicks = 20;
// A worker gives up a call to Join after this time.
constexpr uint64_t kJoinCallTicks = 100;
constexpr uint64_t kFullDiskTicks = 30;

absl::Status LostState(ServerId server, const std::string& cause) {
  return absl::FailedPreconditionError(
      absl::StrCat("server ", server.value, " lost its state: ", cause));
}

// A checkpoint that the simulated fault has robbed of its verdicts.
void ForgetVerdicts(Checkpoint& checkpoint) {
  for (SavedShard& saved : checkpoint.shards) {
    for (WorkerRecord& row : saved.state.workers) row.last_push.reset();
  }
}

}  // namespace

Server::Server(const Shared& shared, ServerId id, Epoch epoch, RunId new_run,
               std::unique_ptr<Peers> peers)
    : shared_(shared),
      identity_{.job = shared.job.name, .server = id, .epoch = epoch},
      new_run_(new_run),
      membership_(shared.job.rule.max_workers, kLeaseTicks * kTick),
      admitted_(shared.job.server_count),
      scaler_(shared.job.rule, shared.job.server_count, leads() ? epoch.value : 0, peers.get(),
              *control_,
              {.request =
                   [this] {
                     SetModeRequest request;
                     request.set_job(identity_.job);
                     request.set_run(identity_.run.value);
                     return request;
                   },
               .reserve = [](uint32_t) { return absl::OkStatus(); },
               .check_mode = [this](const Rule& rule) { return shared_.job.CheckMode(rule); },
               .warnings = [](const Consistency&) { return Problems(); },
               .step_ahead = [this]() -> absl::StatusOr<Step> { return StepAhead(); },
               .store = [this](const SetModeRequest& request) { return StoreRule(request); },
               .apply = [this](const RuleEvent& event,
                               const std::function<void()>& then) { SubmitToAll(event, then); },
               .record = [](const auto& then) { then(absl::OkStatus()); }}),
      peers_(std::move(peers)) {
  if (shared.job.clip_norm == 0) return;
  const auto partition = [this]() -> const Partition& { return *shared_.job.partition; };
  const auto apply = [this](const ClipEvent& event, const std::function<void()>& then) {
    SubmitToAll(event, then);
  };
  clipper_ = std::make_unique<Clipper>(
      shared.job.clip_norm, Clipper::Parts{identity_, counters_, peers_.get(), partition, apply},
      *control_);
}

std::unique_ptr<Shard> Server::NewShard() const {
  ShardOptions options = shared_.job.shard;
  options.generation = identity_.generation;
  return std::make_unique<Shard>(options, *shared_.job.optimizer, *shared_.job.schedule);
}

void Server::Trace(const std::string& text) const {
  if (shared_.trace != nullptr) shared_.trace(absl::StrCat("s", identity_.server.value, " ", text));
}

absl::Status Server::Start(uint64_t now, bool rolled_back) {
  now_ = last_run_ = now;
  RETURN_IF_ERROR(shared_.files.MakeFolder(kFolder));
  RETURN_IF_ERROR(shared_.files.SyncFolder("/"));
  RETURN_IF_ERROR(Recover());
  if (run_record_.has_value() && shared_.job.durability == Durability::kCheckpoint) {
    if (shared_.job.by_round()) {
      awaits_rollback_ = !rolled_back;
      settled_ = !leads();
    } else {
      RETURN_IF_ERROR(ContinueAlone());
    }
  }
  if (run_record_.has_value()) RETURN_IF_ERROR(RestoreRule());
  if (run_record_.has_value() && shared_.job.broken != BrokenRule::kRuleNotPassedOn) {
    RETURN_IF_ERROR(scaler_.Resume());
  }
  if (awaits_rollback_) return absl::OkStatus();
  if (run_record_.has_value() && shared_.job.durability == Durability::kCheckpoint) {
    for (const auto& [id, held] : shards_) {
      shared_.ledgers[id.value].RollBack(*held.shard, identity_.generation);
    }
    JoinMembersAgain();
  }
  for (const WorkerId worker : membership_.Live()) {
    SubmitToAll(ReturnEvent{worker, membership_.of(worker).incarnation});
  }
  return absl::OkStatus();
}

// A shard may have been saved before a process joined or left, and the members afterwards. Without
// a log, no record tells the shard.
void Server::JoinMembersAgain() {
  for (uint32_t w = 0; w < shared_.job.rule.max_workers; ++w) {
    const WorkerId worker{w};
    const Member& member = membership_.of(worker);
    if (member.incarnation == Incarnation{}) continue;
    SubmitToAll(JoinEvent{worker, member.incarnation});
    if (member.left) SubmitToAll(LeaveEvent{worker, member.incarnation});
  }
}

absl::Status Server::Recover() {
  const absl::StatusOr<thinwire::Checkpoint> checkpoint = ReadCheckpoint(shared_.files, kFolder);
  if (!checkpoint.ok() && !absl::IsNotFound(checkpoint.status())) return checkpoint.status();
  if (checkpoint.ok()) identity_.generation = checkpoint->run.generation;
  for (const ShardId shard : shared_.job.partition->ShardsOf(identity_.server))
    shards_[shard] = {NewShard()};
  if (checkpoint.ok()) RETURN_IF_ERROR(Restore(*checkpoint));
  if (checkpoint.ok()) RETURN_IF_ERROR(ReadSteps());
  if (shared_.job.durability != Durability::kLog) {
    if (!checkpoint.ok()) return absl::OkStatus();
    Trace(absl::StrCat("restores the checkpoint of generation ", identity_.generation.value));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReplayRecords(checkpoint.ok() ? checkpoint->next : 1));
  run_is_durable_ = run_record_.has_value();
  return absl::OkStatus();
}

absl::Status Server::ReplayRecords(LogSequence first) {
  // A server that cannot finish the replay sends no effect of the replayed events.
  const std::vector<ShardLedger> before = shared_.ledgers;
  const auto replay = [this](LogSequence sequence, const ByteChain& bytes) {
    return Replay(sequence, bytes);
  };
  ASSIGN_OR_RETURN(const uint64_t bytes_before, LogBytes());
  const absl::StatusOr<LogSequence> replayed = ReplayLog(shared_.files, kFolder, first, replay);
  if (!replayed.ok()) {
    shared_.ledgers = before;
    return replayed.status();
  }
  const LogSequence next = *replayed;
  // A server without a run has lost its state. It serves no worker.
  for (const auto& [id, held] : shards_) {
    if (run_record_.has_value()) shared_.ledgers[id.value].CheckRecovered(*held.shard, next - 1);
  }
  ASSIGN_OR_RETURN(const uint64_t bytes, LogBytes());
  if (bytes < bytes_before) {
    Trace(absl::StrCat("cuts ", bytes_before - bytes, " bytes of an incomplete commit"));
  }
  ASSIGN_OR_RETURN(log_, LogWriter::Open(shared_.files, kFolder, next));
  if (run_record_.has_value()) {
    Trace(absl::StrCat("restores ", has_checkpoint_ ? "a checkpoint and " : "", next - first,
                       " records"));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Server::LogBytes() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, shared_.files.List(kFolder));
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    if (!ParseSegmentName(name).has_value()) continue;
    ASSIGN_OR_RETURN(const ByteChain segment, shared_.files.Read(absl::StrCat(kFolder, "/", name)));
    bytes += segment.size();
  }
  return bytes;
}

absl::Status Server::Restore(const thinwire::Checkpoint& checkpoint) {
  run_record_ = checkpoint.run;
  identity_.run = checkpoint.run.run;
  run_is_durable_ = true;
  first_join_ = now_;
  has_checkpoint_ = true;
  for (const MemberRecord& member : checkpoint.members) {
    membership_.Restore(member.worker, member.assigned, member.incarnation, member.left,
                        TimeOf(now_));
  }
  for (const SavedShard& saved : checkpoint.shards) {
    Held& held = shards_.at(saved.shard);
    RETURN_IF_ERROR(held.shard->Restore(saved.state));
    held.applied = saved.applied;
    if (saved.state.rule.has_value()) scaler_.Restore({*saved.state.rule, {}});
  }
  for (const SavedShard& saved : checkpoint.shards) {
    if (saved.state.next_rule.has_value()) scaler_.Restore(*saved.state.next_rule);
  }
  return absl::OkStatus();
}

absl::Status Server::Replay(LogSequence sequence, const ByteChain& bytes) {
  const auto value_count = [this](ShardId shard) -> std::optional<size_t> {
    if (!shards_.contains(shard)) return std::nullopt;
    return kShardValues;
  };
  ASSIGN_OR_RETURN(const LogRecord record,
                   DecodeRecord(bytes, shared_.job.rule.max_workers, value_count));
  if (const auto* begin = std::get_if<BeginRecord>(&record)) {
    run_record_ = *begin;
    identity_.run = begin->run;
    first_join_ = now_;
  } else if (const auto* member = std::get_if<MemberRecord>(&record)) {
    membership_.Restore(member->worker, member->assigned, member->incarnation, member->left,
                        TimeOf(now_));
  } else {
    const auto& [shard, event] = std::get<ShardRecord>(record);
    if (const auto* rule = std::get_if<RuleEvent>(&event)) scaler_.Restore(*rule);
    Held& held = shards_.at(shard);
    if (sequence <= held.applied) return absl::OkStatus();
    const Effects effects = held.shard->Apply(event);
    held.applied = sequence;
    ShardLedger& ledger = shared_.ledgers[shard.value];
    if (sequence > ledger.recorded()) ledger.Record(event, effects, *held.shard, sequence);
  }
  return absl::OkStatus();
}

absl::Status Server::ContinueAlone() {
  ASSIGN_OR_RETURN(thinwire::Checkpoint checkpoint, ReadCheckpoint(shared_.files, kFolder));
  ++checkpoint.run.generation;
  RETURN_IF_ERROR(WriteCheckpoint(shared_.files, kFolder, checkpoint));
  identity_.generation = checkpoint.run.generation;
  // The generation is an option of the shards.
  for (auto& [id, held] : shards_) held.shard = NewShard();
  Trace(absl::StrCat("goes on alone under generation ", identity_.generation.value));
  return Restore(checkpoint);
}

bool Server::StoresRule() const {
  // DrawJob also draws rules that JobSpec refuses.
  const bool valid = shared_.job.CheckMode(shared_.job.rule).ok();
  return leads() && shared_.job.durability != Durability::kNone && valid;
}

absl::Status Server::StoreRule(const SetModeRequest& request) {
  if (!StoresRule()) return absl::OkStatus();
  LeadState state;
  state.set_run(identity_.run.value);
  *state.mutable_rule() = request;
  const absl::Status written = WriteLeadState(shared_.files, kFolder, state);
  if (written.ok() || absl::IsResourceExhausted(written)) return written;
  store_error_ = written;
  return absl::UnknownError("either rule may be on the disk");
}

absl::Status Server::RestoreRule() {
  if (!StoresRule() || shared_.job.broken == BrokenRule::kRuleNotStored) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto stored, ReadLeadState(shared_.files, kFolder, identity_.run));
  if (!stored.has_value()) return absl::OkStatus();
  const bool aligned = shared_.job.durability == Durability::kCheckpoint && shared_.job.by_round();
  return scaler_.Restore(stored->rule(), aligned ? StepAhead() : Step{});
}

void Server::RemindServers() {
  const bool broken = shared_.job.broken == BrokenRule::kRuleNotPassedOn ||
                      shared_.job.broken == BrokenRule::kServersNotReminded;
  if (!broken && now_ % kReminderTicks == 0) scaler_.Remind();
}

absl::Status Server::RollBack(Generation generation, Step step) {
  RETURN_IF_ERROR(ContinueFrom(shared_.files, kFolder, step, generation));
  Trace(absl::StrCat("rolls back to step ", step.value, " under generation ", generation.value));
  return absl::OkStatus();
}

absl::Status Server::ReadSteps() {
  steps_.clear();
  ASSIGN_OR_RETURN(const std::vector<AlignedCheckpoint> aligned,
                   ListAlignedCheckpoints(shared_.files, kFolder));
  for (const AlignedCheckpoint& checkpoint : aligned) steps_.push_back(checkpoint.step);
  return absl::OkStatus();
}

ServerCheckpoints Server::checkpoints() const {
  return {identity_.run, identity_.generation, awaits_rollback_, steps_};
}

Step Server::frontier() const {
  Step largest;
  for (const auto& [id, held] : shards_) largest = std::max(largest, held.shard->frontier());
  return largest;
}

const Shard* Server::shard(ShardId id) const {
  const auto found = shards_.find(id);
  return found == shards_.end() ? nullptr : found->second.shard.get();
}

bool Server::waits_for_norm() const {
  return std::ranges::any_of(shards_, [](const auto& held) { return held.second.shard->full(); });
}

bool Server::at_rest() const {
  const bool durable = log_ == nullptr || (!log_->has_queued() && !log_->has_unflushed());
  return membership_.Live().empty() && durable && !awaits_rollback_;
}

std::string Server::Describe() const {
  std::ostringstream out;
  out << "s" << identity_.server << " generation " << identity_.generation
      << (awaits_rollback_ ? " awaits a rollback" : "");
  for (const auto& [id, held] : shards_) {
    out << "\n  shard " << id << " frontier " << held.shard->frontier()
        << (held.shard->full() ? ", full" : "") << ", " << held.shard->rule();
    if (held.shard->next_rule().has_value()) out << ", later " << held.shard->next_rule()->rule;
    for (const BlockedRead& read : held.shard->BlockedReads()) out << "\n    " << read;
  }
  return out.str();
}

absl::Status Server::Receive(uint64_t now, const ToServer& message) {
  now_ = now;
  if (const auto* frame = std::get_if<ByteChain>(&message.body)) {
    ReceiveFrame(message, *frame);
  } else if (const auto* join = std::get_if<JoinRequest>(&message.body)) {
    HandleJoin({*join, message.process, message.call, now});
  } else if (const auto* heartbeat = std::get_if<HeartbeatRequest>(&message.body)) {
    HandleHeartbeat(message, *heartbeat);
  } else {
    HandleLeave(message, std::get<LeaveRequest>(message.body));
  }
  return WriteIfSaved();
}

void Server::ReceiveFrame(const ToServer& message, const ByteChain& bytes) {
  WorkerFrame frame = ParseWorkerFrame(bytes).value();
  if (frame.epoch != identity_.epoch || awaits_rollback_) return;
  const WorkerId worker = frame.worker;
  const Incarnation incarnation = frame.incarnation;
  if (incarnation > membership_.of(worker).incarnation) return;
  streams_[{worker, incarnation}] = message.process;
  RenewLease(worker, incarnation);
  auto events = EventsOf(std::move(frame), *shared_.job.partition, identity_.server,
                         identity_.generation, shared_.job.publishes());
  for (const ShardEvents& of_shard : events.value()) {
    for (const Event& event : of_shard.events) Submit(of_shard.shard, event, [](const Effects&) {});
  }
}

void Server::Reply(ProcessId process, uint64_t call, decltype(ToWorker::body) body) const {
  shared_.send({identity_.server, process, call, std::move(body)});
}

void Server::HandleJoin(const JoinCall& call) {
  const auto refuse = [&](absl::Status status) {
    Reply(call.process, call.call, absl::StatusOr<JoinReply>(std::move(status)));
  };
  if (awaits_rollback_) return refuse(absl::UnavailableError("awaits a rollback"));
  const RunId run{call.request.run()};
  if (run != identity_.run && !(leads() && run == RunId{})) {
    return refuse(LostState(identity_.server, absl::StrCat("worker ", call.request.worker(),
                                                           " belongs to another run")));
  }
  if (identity_.run == RunId{}) BelongTo(new_run_, call.request);
  if (!first_join_.has_value()) first_join_ = now_;
  const WorkerId worker{call.request.worker()};
  const Incarnation incarnation{call.request.incarnation()};
  if (incarnation == Incarnation{}) {
    if (!TryAssign(call)) waiting_joins_.push_back(call);
    return;
  }
  membership_.Announce(worker, incarnation);
  const absl::Status adopted = membership_.Adopt(worker, incarnation, TimeOf(now_));
  if (!adopted.ok()) return refuse(adopted);
  AdmitWorker(call, incarnation);
}

void Server::BelongTo(RunId run, const JoinRequest& join) {
  identity_.run = run;
  run_record_ = BeginRecord{.run = run, .generation = identity_.generation, .join = join};
  Append(*run_record_, [this](LogSequence) { run_is_durable_ = true; });
}

absl::StatusOr<Epoch> Server::Admit(RunId run, Epoch known, const JoinRequest& join) {
  if (awaits_rollback_) return absl::UnavailableError("awaits a rollback");
  if (identity_.run == RunId{} && known != Epoch{})
    return LostState(identity_.server, "it was restarted");
  if (identity_.run == RunId{}) BelongTo(run, join);
  if (identity_.run != run) return LostState(ServerId{0}, "this server belongs to another run");
  if (!run_is_durable_) return absl::UnavailableError("the run is not durable");
  return identity_.epoch;
}

void Server::Clip(const ClipRequest& request, Peers::ClipDone done) {
  if (awaits_rollback_) return done(absl::UnavailableError("awaits a rollback"));
  if (RunId{request.run()} != identity_.run ||
      Generation{request.generation()} != identity_.generation) {
    return done(absl::FailedPreconditionError("another run or generation"));
  }
  clipper_->Clip(request, std::move(done));
}

void Server::SetMode(const SetModeRequest& request, const Scaler::SetModeDone& done) {
  if (awaits_rollback_ || !settled_) return done(absl::UnavailableError("awaits a rollback"));
  if (identity_.run == RunId{}) {
    return done(absl::FailedPreconditionError("no worker has joined yet"));
  }
  if (leads()) return scaler_.SetMode(request, done);
  if (RunId{request.run()} != identity_.run) {
    return done(absl::FailedPreconditionError("another run"));
  }
  SetModeRequest followed = request;
  if (shared_.job.broken == BrokenRule::kOldRuleFollowed) followed.set_change(~uint64_t{0});
  scaler_.Follow(followed, done);
}

Step Server::StepAhead() const {
  Step newest;
  for (const auto& [id, held] : shards_) {
    for (uint32_t w = 0; w < shared_.job.rule.max_workers; ++w) {
      newest = std::max(newest, held.shard->next(WorkerId{w}));
    }
  }
  return newest + 1 + shared_.random.Below(4);
}

absl::Status Server::AdmitServers(const JoinRequest& join) {
  for (uint32_t s = 1; s < admitted_.size(); ++s) {
    ASSIGN_OR_RETURN(admitted_[s], shared_.admit(ServerId{s}, identity_.run, admitted_[s], join));
  }
  return absl::OkStatus();
}

// Returns false if the call must wait.
bool Server::TryAssign(const JoinCall& call) {
  if (now_ > call.arrival + kJoinCallTicks) return true;  // the worker has given up the call
  if (const absl::Status admitted = AdmitServers(call.request); !admitted.ok()) {
    if (absl::IsUnavailable(admitted)) return false;
    Reply(call.process, call.call, absl::StatusOr<JoinReply>(admitted));
    return true;
  }
  const WorkerId worker{call.request.worker()};
  // A lead that has forgotten assigned incarnations must not assign one of them again.
  const Member& member = membership_.of(worker);
  if (!member.live() || TimeOf(now_) > member.lease_end) {
    membership_.Announce(worker, Incarnation{identity_.generation.value << 20});
  }
  const auto assigned = membership_.Assign(worker, TimeOf(call.arrival), TimeOf(now_));
  if (!assigned.ok()) {
    Reply(call.process, call.call, absl::StatusOr<JoinReply>(assigned.status()));
  } else if (assigned->has_value()) {
    AdmitWorker(call, **assigned);
  } else {
    return false;
  }
  return true;
}

void Server::AdmitWorker(const JoinCall& call, Incarnation incarnation) {
  const WorkerId worker{call.request.worker()};
  streams_[{worker, incarnation}] = call.process;
  Append(MemberRecordOf(worker), [](LogSequence) {});
  const auto gather = std::make_shared<Gather>(Gather{.missing = shards_.size()});
  gather->reply.set_incarnation(incarnation.value);
  gather->reply.set_generation(identity_.generation.value);
  gather->reply.set_epoch(identity_.epoch.value);
  gather->reply.set_run(identity_.run.value);
  for (const auto& [id, held] : shards_) {
    Submit(id, JoinEvent{worker, incarnation},
           [this, gather, id, process = call.process, number = call.call](const Effects& effects) {
             *gather->reply.add_shards() = ShardStateOf(id, *effects.join);
             if (effects.join->by_round) gather->reply.set_by_round(true);
             if (--gather->missing > 0) return;
             Reply(process, number, absl::StatusOr<JoinReply>(gather->reply));
           });
  }
  if (clipper_ != nullptr && leads()) clipper_->CallServers();
}

void Server::HandleHeartbeat(const ToServer& message, const HeartbeatRequest& request) {
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  if (request.epoch() == identity_.epoch.value && !awaits_rollback_)
    RenewLease(worker, incarnation);
  HeartbeatReply reply;
  reply.set_generation(identity_.generation.value);
  reply.set_epoch(identity_.epoch.value);
  reply.set_fenced(!awaits_rollback_ && incarnation < membership_.of(worker).incarnation);
  if (announced_step_.has_value()) reply.set_checkpoint_step(announced_step_->value);
  Reply(message.process, message.call, reply);
}

void Server::HandleLeave(const ToServer& message, const LeaveRequest& request) {
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  if (awaits_rollback_) return;  // the worker calls again
  if (!membership_.Leave(worker, incarnation).ok()) {
    // A newer process has the number, or the number is unknown after a rollback.
    return Reply(message.process, message.call, LeaveReply());
  }
  Append(MemberRecordOf(worker), [](LogSequence) {});
  const bool waits = clipper_ != nullptr && membership_.Live().empty();
  const auto reply = [this, process = message.process, call = message.call] {
    Reply(process, call, LeaveReply());
  };
  SubmitToAll(LeaveEvent{worker, incarnation}, [this, waits, reply] {
    if (!waits) return reply();
    control_->Post([this, reply] { clipper_->WhenClosed(TimeOf(now_), reply); });
  });
}

void Server::RenewLease(WorkerId worker, Incarnation incarnation) {
  if (membership_.Renew(worker, incarnation, TimeOf(now_)) == LeaseState::kReturned) {
    SubmitToAll(ReturnEvent{worker, incarnation});
  }
  if (incarnation != membership_.of(worker).incarnation) return;
  std::erase_if(expired_alone_, [&](const auto& lease) {
    if (lease.second != worker) return false;
    Submit(lease.first, ReturnEvent{worker, incarnation}, [](const Effects&) {});
    return true;
  });
}

bool Server::ExpireAt(ShardId shard, WorkerId worker) {
  if (awaits_rollback_ || !membership_.of(worker).live()) return false;
  expired_alone_.emplace(shard, worker);
  Submit(shard, ExpireEvent{worker, membership_.of(worker).incarnation}, [](const Effects&) {});
  return true;
}

void Server::Append(const LogRecord& record, std::function<void(LogSequence)> done) {
  if (log_ == nullptr) return done(0);
  if (shared_.job.broken != BrokenRule::kSentBeforeFlush) {
    log_->Append(EncodeRecord(record), std::move(done));
    return;
  }
  done(log_->Append(EncodeRecord(record), [](LogSequence) {}));
}

void Server::Submit(ShardId shard, const Event& event, std::function<void(const Effects&)> done) {
  Append(ShardRecord{shard, event}, [this, shard, event, done = std::move(done)](LogSequence s) {
    done(Apply(shard, event, s));
  });
}

void Server::SubmitToAll(const Event& event, const std::function<void()>& then) {
  const auto missing = std::make_shared<size_t>(shards_.size());
  for (const auto& [id, held] : shards_) {
    Submit(id, event, [missing, then](const Effects&) {
      if (--*missing == 0) then();
    });
  }
}

Effects Server::Apply(ShardId id, const Event& event, LogSequence sequence) {
  Held& held = shards_.at(id);
  const Effects effects = held.shard->Apply(event);
  held.applied = std::max(held.applied, sequence);
  if (shared_.trace != nullptr) {
    std::ostringstream line;
    line << "shard " << id << ": " << event << " -> " << effects;
    Trace(line.str());
  }
  shared_.ledgers[id.value].Record(event, effects, *held.shard, sequence);
  if (effects.judgement.has_value()) {
    const Judgement& judgement = *effects.judgement;
    ServerFrame frame;
    frame.verdicts.push_back(VerdictEntryOf(id, judgement));
    SendFrame(judgement.worker, judgement.incarnation, std::move(frame));
  }
  for (const ReadAnswer& answer : effects.answers) {
    if (shared_.random.Percent(30)) {
      unwritten_.emplace_back(id, answer);
    } else {
      SendFrame(answer.worker, answer.incarnation, AnswerOf(id, answer));
    }
  }
  SaveIfPossible(id);
  if (clipper_ == nullptr) return effects;
  clipper_->Applied(id, effects);
  if (shared_.job.broken == BrokenRule::kClippedByOwnNorm && effects.full_round.has_value()) {
    const auto& [step, squared_norm] = *effects.full_round;
    Submit(id, ClipEvent{step, ClipFactor(shared_.job.clip_norm, squared_norm)},
           [](const Effects&) {});
  }
  return effects;
}

void Server::SendFrame(WorkerId worker, Incarnation incarnation, ServerFrame frame) const {
  const auto stream = streams_.find({worker, incarnation});
  if (stream == streams_.end()) return;
  frame.generation = identity_.generation;
  frame.epoch = identity_.epoch;
  Reply(stream->second, 0, WriteFrame(frame));
}

ServerFrame Server::AnswerOf(ShardId id, const ReadAnswer& answer) {
  Shard& shard = *shards_.at(id).shard;
  ParametersEntry entry = {
      .shard = id, .step = answer.step, .version = shard.version(), .frontier = shard.frontier()};
  ServerFrame frame;
  if (!answer.form.published) {
    entry.selected = shard.selected_list();
    entry.payload = shard.Encoded(answer.form.codec);
    frame.parameters = {std::move(entry)};
    return frame;
  }
  const DeltaChain chain = shard.Deltas(answer.form.held);
  shared_.ledgers[id.value].CountAnswer(chain.front()->kind != PublishedDelta::Kind::kFull);
  for (size_t i = 0; i < chain.size(); ++i) {
    const PublishedDelta& delta = *chain[i];
    entry.version = delta.version;
    entry.base_version = delta.base;
    entry.kind = static_cast<uint32_t>(delta.kind);
    entry.more = i + 1 < chain.size();
    entry.published_hash = delta.hash;
    entry.payload = delta.payload;
    if (!entry.more) entry.selected = shard.selected_list();
    frame.parameters.push_back(entry);
  }
  return frame;
}

// A server writes an answer when the stream of the worker has room, with the parameters of that
// time.
void Server::SendUnwritten() {
  for (const auto& [shard, answer] : std::exchange(unwritten_, {})) {
    SendFrame(answer.worker, answer.incarnation, AnswerOf(shard, answer));
  }
}

void Server::SendWaitNotices() {
  for (const auto& [id, held] : shards_) {
    for (const BlockedRead& read : held.shard->BlockedReads()) {
      ServerFrame frame;
      frame.waits.push_back(WaitingEntryOf(id, read));
      frame.waits.back().seed = read.unseeded;
      SendFrame(read.worker, read.incarnation, std::move(frame));
    }
  }
}

void Server::RunPosted() {
  while (!posted_.empty()) posted_.RunNext();
}

absl::Status Server::Tick(uint64_t now) {
  now_ = now;
  // Workers were not silent while this server did not run.
  const uint64_t pause = now - std::exchange(last_run_, now);
  if (pause > kLeaseTicks / 2) membership_.ExtendLeases(pause * kTick);
  SendUnwritten();
  if (!awaits_rollback_) {
    for (const auto& [worker, incarnation] : membership_.Expire(TimeOf(now))) {
      SubmitToAll(ExpireEvent{worker, incarnation});
    }
    std::erase_if(waiting_joins_, [this](const JoinCall& call) { return TryAssign(call); });
    if (!start_timed_out_ && first_join_.has_value() && now > *first_join_ + kStartTimeoutTicks) {
      start_timed_out_ = true;
      for (const auto& [id, held] : shards_) {
        if (!held.shard->open()) Submit(id, OpenEvent{}, [](const Effects&) {});
      }
    }
    if (now % kNoticeTicks == 0) SendWaitNotices();
    if (clipper_ != nullptr) clipper_->Tick(TimeOf(now));
    if (leads() && settled_ && identity_.run != RunId{}) {
      scaler_.Tick(/*may_shrink=*/false);
      RemindServers();
    }
  }
  RunPosted();
  RETURN_IF_ERROR(store_error_);
  if (log_ != nullptr) RETURN_IF_ERROR(Commit(now));
  return WriteIfSaved();
}

// Flushes the written records when their time has come, then writes the queued ones.
absl::Status Server::Commit(uint64_t now) {
  if (log_->has_unflushed() && now >= flush_at_) RETURN_IF_ERROR(log_->Flush());
  if (log_->has_unflushed() || !log_->has_queued()) return absl::OkStatus();
  RETURN_IF_ERROR(log_->Write());
  flush_at_ = now + shared_.random.Below(4);
  return absl::OkStatus();
}

absl::Status Server::Checkpoint(std::optional<Step> step) {
  if (saving() || awaits_rollback_ || !run_record_.has_value()) return absl::OkStatus();
  save_at_ = step;
  for (const auto& [id, held] : shards_) unsaved_.push_back(id);
  for (const auto& [id, held] : shards_) SaveIfPossible(id);
  return WriteIfSaved();
}

void Server::SaveIfPossible(ShardId id) {
  const auto missing = std::ranges::find(unsaved_, id);
  Held& held = shards_.at(id);
  if (missing == unsaved_.end() || !held.shard->CanSave()) return;
  if (save_at_.has_value() && held.shard->frontier() < *save_at_) return;
  if (log_ != nullptr) held.applied = std::max(held.applied, log_->durable());
  saved_.push_back({.shard = id, .applied = held.applied, .state = held.shard->Save()});
  unsaved_.erase(missing);
}

absl::Status Server::WriteIfSaved() {
  if (!unsaved_.empty() || saved_.empty() || now_ < write_again_at_) return absl::OkStatus();
  thinwire::Checkpoint checkpoint = CheckpointHead();
  checkpoint.shards = saved_;
  std::ranges::sort(checkpoint.shards, {}, &SavedShard::shard);
  checkpoint.step = CommonFrontier(checkpoint.shards);
  LogSequence applied = checkpoint.shards.front().applied;
  for (const SavedShard& saved : checkpoint.shards) applied = std::min(applied, saved.applied);
  checkpoint.next = applied + 1;
  if (shared_.job.broken == BrokenRule::kVerdictNotSaved) ForgetVerdicts(checkpoint);
  const absl::Status written =
      WriteCheckpoint(shared_.files, kFolder, checkpoint, {.steps = kept_steps_});
  if (absl::IsResourceExhausted(written)) {
    write_again_at_ = now_ + kFullDiskTicks;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(written);
  saved_.clear();
  has_checkpoint_ = true;
  Trace(absl::StrCat("completes a checkpoint",
                     save_at_.has_value() ? absl::StrCat(" of step ", save_at_->value) : ""));
  if (log_ != nullptr) return log_->RemoveBefore(checkpoint.next);
  return ReadSteps();
}

MemberRecord Server::MemberRecordOf(WorkerId worker) const {
  const Member& member = membership_.of(worker);
  return {worker, member.assigned, member.incarnation, member.left};
}

thinwire::Checkpoint Server::CheckpointHead() const {
  thinwire::Checkpoint head;
  head.server = identity_.server;
  head.run = *run_record_;
  head.run.generation = identity_.generation;
  for (uint32_t w = 0; w < shared_.job.rule.max_workers; ++w) {
    const MemberRecord member = MemberRecordOf(WorkerId{w});
    if (member.assigned != Incarnation{}) head.members.push_back(member);
  }
  return head;
}

}  // namespace thinwire::simulation
