#include "server/protocols/checkpoints/stored_state.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"
#include "proto/state.pb.h"
#include "server/durable/event_log.h"
#include "server/durable/lead_file.h"
#include "server/durable/state_folder.h"

namespace thinwire {

namespace {

bool HasSnapshot(const DurableOptions& options) {
  return options.snapshot != nullptr && *options.snapshot != nullptr;
}

// Returns the state from which the job begins. Errors: those of ReadCheckpoint.
absl::StatusOr<Checkpoint> BeginState(const DurableOptions& options) {
  if (HasSnapshot(options)) return **options.snapshot;
  absl::StatusOr<Checkpoint> stored = ReadCheckpoint(*options.files, options.folder);
  if (stored.ok() && options.snapshot != nullptr) {
    *options.snapshot = std::make_shared<const Checkpoint>(*stored);
  }
  return stored;
}

}  // namespace

absl::StatusOr<Generation> BeginGeneration(const DurableOptions& options, Fold fold) {
  if (HasSnapshot(options)) return (*options.snapshot)->run.generation;
  const auto name = NewestCheckpoint(*options.files, options.folder);
  if (absl::IsNotFound(name.status())) return Generation{1};
  RETURN_IF_ERROR(name.status());
  ASSIGN_OR_RETURN(const CheckpointManifest manifest,
                   ReadManifest(*options.files, options.folder, *name));
  // A return to a snapshot in memory writes no checkpoint.
  ASSIGN_OR_RETURN(const Generation returned, StoredGeneration(*options.files, options.folder));
  Generation generation = std::max(Generation{manifest.generation()}, returned);
  if (options.durability == Durability::kCheckpoint && fold == Fold::kPush) {
    ++generation;
    RETURN_IF_ERROR(ContinueFromNewest(*options.files, options.folder, generation,
                                       {.retention = options.retention}));
  }
  return generation;
}

absl::Status StoredState::Recover(const DurableOptions& options, bool aligned, absl::Time now) {
  durable_ = &options;
  aligned_ = aligned;
  folder_ = options.folder;
  now_ = now;
  LogSequence first = 1;
  const absl::StatusOr<Checkpoint> checkpoint = BeginState(options);
  if (checkpoint.ok()) {
    RETURN_IF_ERROR(Restore(*checkpoint));
    first = checkpoint->next;
  } else if (!absl::IsNotFound(checkpoint.status())) {
    return checkpoint.status();
  }
  std::string log;
  if (options.durability == Durability::kLog) {
    ASSIGN_OR_RETURN(const LogSequence next, StartLog(options, first));
    log = absl::StrCat(", ", next - first, " records of the event log");
  }
  if (!run_.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(RestoreLeadFile(checkpoint.ok() ? checkpoint->step : std::nullopt));
  LOG(INFO) << "recovered run " << NameOf(run_->run) << ", generation " << identity_.generation
            << ": " << (checkpoint.ok() ? "a checkpoint" : "no checkpoint") << log;
  return absl::OkStatus();
}

absl::StatusOr<LogSequence> StoredState::StartLog(const DurableOptions& options,
                                                  LogSequence first) {
  const auto replay = [this](LogSequence sequence, const ByteChain& bytes) {
    return Replay(sequence, bytes);
  };
  ASSIGN_OR_RETURN(const LogSequence next, ReplayLog(*options.files, folder_, first, replay));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLog> log,
                   EventLog::Open(*options.files, {.folder = folder_, .tracer = options.tracer},
                                  parts_.threads.Make(), next, options.log_failed));
  parts_.journal.Start(std::move(log));
  return next;
}

absl::Status StoredState::Restore(const Checkpoint& checkpoint) {
  RETURN_IF_ERROR(Restore(checkpoint.run));
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  if (checkpoint.server != identity_.server || checkpoint.shards.size() != model->hosts().size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder_, ": a checkpoint of another server (expected server ", identity_.server.value,
        " with ", model->hosts().size(), " shards, got server ", checkpoint.server.value, " with ",
        checkpoint.shards.size(), ")"));
  }
  for (const MemberRecord& member : checkpoint.members) {
    RETURN_IF_ERROR(CheckNumber(member.worker));
    Restore(member);
  }
  parts_.state.dealer.Reset(checkpoint.deals);
  for (const SavedShard& saved : checkpoint.shards) {
    ShardHost* host = model->Find(saved.shard);
    if (host == nullptr) {
      return absl::DataLossError(
          absl::StrCat(folder_, ": shard ", saved.shard.value, " is not on this server"));
    }
    RETURN_IF_ERROR(host->Restore(saved));
    if (saved.state.rule.has_value()) parts_.state.rule.Restore({*saved.state.rule, {}});
  }
  for (const SavedShard& saved : checkpoint.shards) {
    if (saved.state.next_rule.has_value()) parts_.state.rule.Restore(*saved.state.next_rule);
  }
  if (checkpoint.lead.has_value()) {
    RETURN_IF_ERROR(CheckNumbers(*checkpoint.lead));
    Restore(*checkpoint.lead);
  }
  return absl::OkStatus();
}

absl::Status StoredState::RestoreLeadFile(std::optional<Step> step) {
  if (!identity_.leads()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<LeadState> state,
                   ReadLeadState(*durable_->files, folder_, run_->run));
  if (!state.has_value()) return absl::OkStatus();
  if (state->has_rule()) {
    rule_ = state->rule();
    // Servers that go back together change the rule at the same later step.
    const Step least = aligned_ && step.has_value() ? *step + Dealer::kLeastSteps : Step{};
    RETURN_IF_ERROR(parts_.state.rule.Restore(*rule_, least));
  }
  if (state->has_lead()) {
    const LeadRecord lead = LeadOf(state->lead());
    RETURN_IF_ERROR(CheckNumbers(lead));
    Restore(lead);
    if (!aligned_) parts_.state.dealer.Reset({state->deals().begin(), state->deals().end()});
  }
  return absl::OkStatus();
}

absl::Status StoredState::CheckNumbers(const LeadRecord& record) const {
  for (const auto& [worker, incarnation] : record.drained) RETURN_IF_ERROR(CheckNumber(worker));
  return absl::OkStatus();
}

absl::Status StoredState::CheckNumber(WorkerId worker) const {
  if (worker.value < parts_.state.membership.worker_count()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(folder_, ": worker ", worker.value,
                                          " is not a worker of this job (expected below ",
                                          parts_.state.membership.worker_count(), ")"));
}

absl::Status StoredState::Restore(const BeginRecord& record) {
  if (record.join.job() != identity_.job) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder_, ": holds the state of another job (expected ", Quoted(identity_.job),
                     ", got ", Quoted(record.join.job()), ")"));
  }
  absl::Status status = parts_.state.match.Check(record.join);
  if (status.ok()) status = parts_.model.MakeOrCompare(record.join);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(folder_,
                                                    ": the saved job has another "
                                                    "configuration: ",
                                                    status.message()));
  }
  // The next worker to join states the task, which may have more epochs than before.
  parts_.model.AwaitPlan();
  run_ = record;
  return absl::OkStatus();
}

void StoredState::Restore(const MemberRecord& record) {
  parts_.state.membership.Restore(record.worker, record.assigned, record.incarnation, record.left,
                                  now_);
}

void StoredState::Restore(const LeadRecord& record) {
  std::vector<Epoch>& admitted = parts_.state.admitted;
  std::copy_n(record.admitted.begin(), std::min(record.admitted.size(), admitted.size()),
              admitted.begin());
  parts_.state.rule.RestoreReduction(record.target_workers);
  for (const auto& [worker, incarnation] : record.drained) {
    parts_.state.membership.RestoreRetired(worker, incarnation);
  }
}

absl::Status StoredState::Replay(LogSequence sequence, const ByteChain& bytes) {
  const std::shared_ptr<const HostedModel> model = parts_.model.Get();
  const auto value_count = [&model](ShardId shard) -> std::optional<size_t> {
    const ShardHost* host = model == nullptr ? nullptr : model->Find(shard);
    if (host == nullptr) return std::nullopt;
    return host->value_count();
  };
  ASSIGN_OR_RETURN(const LogRecord record,
                   DecodeRecord(bytes, parts_.state.membership.worker_count(), value_count));
  if (const auto* event = std::get_if<ShardRecord>(&record)) {
    model->host(event->shard).Replay(sequence, event->event);
    if (const auto* rule = std::get_if<RuleEvent>(&event->event)) {
      parts_.state.rule.Restore(*rule);
    }
    return absl::OkStatus();
  }
  if (const auto* member = std::get_if<MemberRecord>(&record)) {
    Restore(*member);
    return absl::OkStatus();
  }
  if (const auto* deal = std::get_if<DealRecord>(&record)) {
    parts_.state.dealer.Replay(deal->deal);
    return absl::OkStatus();
  }
  if (const auto* lead = std::get_if<LeadRecord>(&record)) {
    Restore(*lead);
    return absl::OkStatus();
  }
  return Restore(std::get<BeginRecord>(record));
}

MemberRecord StoredState::MemberRecordOf(WorkerId worker) const {
  const Member& member = parts_.state.membership.of(worker);
  return {.worker = worker,
          .assigned = member.assigned,
          .incarnation = member.incarnation,
          .left = member.left};
}

LeadRecord StoredState::LeadRecordNow() const {
  return {.admitted = parts_.state.admitted,
          .target_workers = parts_.state.rule.reduction(),
          .drained = parts_.state.membership.Retired()};
}

Checkpoint StoredState::Head() const {
  Checkpoint head;
  head.server = identity_.server;
  head.run = *run_;
  head.run.generation = identity_.generation;
  for (uint32_t w = 0; w < parts_.state.membership.worker_count(); ++w) {
    const MemberRecord member = MemberRecordOf(WorkerId{w});
    if (member.assigned != Incarnation{}) head.members.push_back(member);
  }
  head.deals = parts_.state.dealer.deals();
  if (identity_.leads()) head.lead = LeadRecordNow();
  return head;
}

void StoredState::RecordMember(WorkerId worker, std::function<void()> then) {
  parts_.journal.Append(MemberRecordOf(worker), [then = std::move(then)](LogSequence) { then(); });
}

void StoredState::RecordLead(const Recorded& then) {
  if (keeps_lead_file()) return then(WriteLeadFile(rule_));
  parts_.journal.Append(LeadRecordNow(), [then](LogSequence) { then(absl::OkStatus()); });
}

void StoredState::RecordDeal(const Deal& deal, const Recorded& then) {
  if (keeps_lead_file() && !aligned_) return then(WriteLeadFile(rule_));
  parts_.journal.Append(DealRecord{deal}, [then](LogSequence) { then(absl::OkStatus()); });
}

absl::Status StoredState::StoreRule(const SetModeRequest& request) {
  if (durable_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(WriteLeadFile(request));
  rule_ = request;
  return absl::OkStatus();
}

absl::Status StoredState::WriteLeadFile(const std::optional<SetModeRequest>& rule) const {
  LeadState state;
  state.set_run(run_->run.value);
  if (rule.has_value()) *state.mutable_rule() = *rule;
  if (keeps_lead_file()) {
    LeadRecord lead = LeadRecordNow();
    // A change of the number of workers completes or replaces a reduction.
    const bool changes =
        rule.has_value() && rule->consistency().workers() != parts_.state.rule.rule().workers;
    if (changes) lead.target_workers = 0;
    *state.mutable_lead() = LeadMessage(lead);
    if (!aligned_) {
      const std::vector<Deal> deals = parts_.state.dealer.deals();
      state.mutable_deals()->Assign(deals.begin(), deals.end());
    }
  }
  return WriteLeadState(*durable_->files, folder_, state);
}

void StoredState::RecordRun(RunId run, const std::string& token_key, const JoinRequest& request) {
  run_ = BeginRecord{
      .run = run, .generation = identity_.generation, .join = request, .token_key = token_key};
  parts_.journal.Append(*run_, [](LogSequence) {});
  for (const MemberRecord& member : Head().members) {
    parts_.journal.Append(member, [](LogSequence) {});
  }
}

}  // namespace thinwire
