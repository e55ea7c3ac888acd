#include "server/job/job.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "config/stability.h"
#include "proto/deal_check.h"
#include "server/core/shard.h"
#include "server/job/job_status.h"
#include "server/protocols/deals/growth_lead.h"
#include "server/shards/convert.h"

namespace thinwire {
namespace {

constexpr absl::Duration kWaitNoticeInterval = absl::Seconds(2);
// A server that has forgotten the newest rule follows an older one for up to this time.
constexpr absl::Duration kReminderInterval = absl::Seconds(1);

ShardOptions ShardOptionsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .generation = options.generation,
          .sparse_updates = options.sparse_updates,
          .staleness = options.staleness,
          .publish = options.publish,
          .checkpointed = options.durable.has_value(),
          .clips = options.clip_norm > 0,
          .memory = options.memory};
}

AdmitRequest AdmissionOf(const JobOptions& options) {
  AdmitRequest request;
  request.set_job(options.name);
  request.set_run(options.run.value);
  request.set_token_key(options.token_key);
  return request;
}

absl::Status NotTheLead(ServerId server) {
  return absl::InvalidArgumentError(
      absl::StrCat("server: not the lead (expected server 0, the first of --addresses, got server ",
                   server.value, ")"));
}

absl::Status Stopping() { return absl::UnavailableError("this server is stopping"); }

}  // namespace

Job::Job(JobOptions options, Clock& clock, const JobExecutors& executors,
         std::unique_ptr<Peers> peers)
    : options_(std::move(options)),
      clock_(clock),
      unix_clock_(executors.unix_clock),
      memory_plan_{.budget_bytes = options_.memory_budget_bytes,
                   .worker_count = options_.rule.workers},
      tokens_(options_.name, options_.server == ServerId{0} ? options_.token_key : ""),
      streams_(options_.rule.max_workers,
               [this] {
                 // Shards without values ask another worker.
                 if (const auto model = model_.Get()) model->AskForValues();
               }),
      scope_{.self = options_.server,
             .epoch = options_.epoch,
             .generation = options_.generation,
             .publishes = options_.publish.has_value(),
             .streams = streams_,
             .counters = counters_,
             .journal = journal_,
             .frames = frames_,
             .model = [this] { return model_.Get(); },
             .heard =
                 [this](WorkerId worker, Incarnation incarnation) {
                   control_.Post([=, this] { RenewLease(worker, incarnation); });
                 }},
      model_(options_.server, options_.server_count, ShardOptionsOf(options_), memory_plan_,
             frames_,
             {.groups = options_.group_updates,
              .strands = executors.shards,
              .streams = streams_,
              .counters = counters_,
              .journal = journal_,
              .clock = clock_,
              .tracer = options_.tracer,
              .applied =
                  [this](ShardId shard, const Effects& effects) {
                    if (clipper_ != nullptr) clipper_->Applied(shard, effects);
                  },
              .observer = options_.observer},
             options_.groups),
      identity_{.job = options_.name,
                .server = options_.server,
                .run = options_.server == ServerId{0} ? options_.run : RunId{},
                .generation = options_.generation,
                .epoch = options_.epoch},
      membership_(options_.rule.max_workers, options_.lease, options_.generation),
      job_match_(options_.config),
      stored_(identity_, {model_, membership_, job_match_, admission_, dealer_, scaler_, journal_,
                          executors.threads}),
      last_wait_notices_(clock.Now()),
      last_reminder_(clock.Now()),
      // A shorter pause expires no lease, because a worker sends about three heartbeats per lease.
      control_(executors.threads.Make(), clock, /*limit=*/options_.lease / 2,
               [this](absl::Duration pause) { ExcusePause(pause); }),
      admission_(AdmissionOf(options_), options_.server_count, peers.get(), control_,
                 [this] {
                   stored_.RecordLead([](const absl::Status& recorded) {
                     if (!recorded.ok()) LOG(WARNING) << "admitted servers: " << recorded.message();
                   });
                 }),
      dealer_(options_.rule.workers, options_.lease),
      deal_lead_(
          dealer_, model_, clock, [this] { return scaler_.rule(); }, control_,
          [this](const Deal& deal, const StoredState::Recorded& then) {
            stored_.RecordDeal(deal, then);
          },
          options_.growth.has_value() ? std::make_unique<GrowthLead>(*options_.growth, dealer_)
                                      : nullptr),
      joins_(membership_, admission_, deal_lead_, clock,
             [this](const JoinCall& call, Incarnation incarnation) {
               AdmitWorker(call, incarnation);
             }),
      // The changes are numbered from the epoch, and not by the clock, so that a suspended earlier
      // process that continues stays below this one.
      scaler_(
          options_.rule, options_.server_count, identity_.leads() ? options_.epoch.value : 0,
          peers.get(), control_,
          {.request =
               [this] {
                 SetModeRequest request;
                 request.set_job(identity_.job);
                 request.set_run(identity_.run.value);
                 return request;
               },
           .reserve = [this](uint32_t workers) { return model_.Reserve(workers); },
           .check_mode = [this](const Rule& rule) { return CheckMode(rule); },
           .warnings = [this](const Consistency& consistency) { return ModeWarnings(consistency); },
           .step_ahead = [this] { return deal_lead_.StepAhead(); },
           .store = [this](const SetModeRequest& request) { return stored_.StoreRule(request); },
           .apply = [this](const RuleEvent& event,
                           std::function<void()> then) { ApplyToAll(event, std::move(then)); },
           .record = [this](const StoredState::Recorded& then) { stored_.RecordLead(then); }}),
      tuner_(options_.auto_rule ? std::optional(options_.rule.fold) : std::nullopt),
      checkpoints_({.durable = options_.durable,
                    .fold = options_.rule.fold,
                    .server_count = options_.server_count,
                    .tracer = options_.tracer},
                   {identity_, model_, stored_, journal_, clock, peers.get(), executors.background},
                   control_),
      clipper_(
          options_.clip_norm > 0
              ? std::make_unique<Clipper>(
                    options_.clip_norm,
                    Clipper::Parts{.identity = identity_,
                                   .counters = counters_,
                                   .peers = peers.get(),
                                   .partition = [this]() -> const Partition& {
                                     return model_.Get()->partition();
                                   },
                                   .apply =
                                       [this](const ClipEvent& event, std::function<void()> then) {
                                         ApplyToAll(event, std::move(then));
                                       }},
                    control_)
              : nullptr),
      peers_(std::move(peers)) {}

Job::~Job() {
  control_.Stop();
  checkpoints_.Stop();
  journal_.Stop();
  if (const auto model = model_.Get()) model->Finish();
}

absl::Status Job::Recover() {
  if (!options_.durable.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(stored_.Recover(*options_.durable, checkpoints_.aligned(), clock_.Now()));
  recovered_ = stored_.run().has_value();
  checkpoints_.Start(recovered_);
  if (leads() && options_.adaptive.has_value()) {
    precision_ = std::make_unique<PrecisionLead>(*options_.adaptive, *options_.durable->files,
                                                 options_.durable->folder, dealer_);
    RETURN_IF_ERROR(precision_->Start(recovered_ ? stored_.run()->run : identity_.run, recovered_));
    checkpoints_.Plan(precision_->snapshot());
  }
  if (!recovered_) return absl::OkStatus();
  RETURN_IF_ERROR(scaler_.Resume());
  dealer_.Resume(clock_.Now(), /*went_back=*/checkpoints_.aligned());
  identity_.run = stored_.run()->run;
  tokens_.set_key(stored_.run()->token_key);
  admission_.set_run(identity_.run, stored_.run()->token_key);
  counters_.SetShardCount(model_.Get()->hosts().size());
  counters_.Update([](StatusReply& counts) { counts.set_recovered(true); });
  if (checkpoints_.awaits_rollback()) {
    LOG(INFO) << checkpoints_.CheckAgreed().message();
  } else {
    ContinueMembers();
  }
  return absl::OkStatus();
}

void Job::ContinueMembers() {
  // Without a log, a shard may have been saved before a Join or a Leave that the members contain.
  for (uint32_t w = 0; w < options_.rule.max_workers; ++w) {
    const WorkerId worker{w};
    const Member& member = membership_.of(worker);
    if (member.incarnation == Incarnation{}) continue;
    if (!journal_.logs()) ApplyToAll(JoinEvent{worker, member.incarnation}, [] {});
    if (member.live()) ApplyToAll(ReturnEvent{worker, member.incarnation}, [] {});
    if (member.left) ApplyToAll(LeaveEvent{worker, member.incarnation}, [] {});
  }
  if (!membership_.Live().empty()) {
    first_join_ = clock_.Now();
    membership_.AwaitReturn();
  } else {
    BeginAgain();  // the run ended or was stopped in order
  }
}

void Job::BeginAgain() {
  for (const auto& [worker, incarnation] : membership_.ExpireAll()) {
    ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  }
  ApplyToAll(ShutEvent{}, [] {});
  first_join_.reset();
  start_timed_out_ = false;
  had_begun_ = false;
  admission_.set_begins_again(true);
}

void Job::Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done,
               std::function<absl::Status()> may_rejoin) {
  control_.Post([this, call = JoinCall{.request = std::move(request),
                                       .abandoned = std::move(abandoned),
                                       .done = std::move(done),
                                       .may_rejoin = std::move(may_rejoin)}] { HandleJoin(call); });
}

void Job::HandleJoin(const JoinCall& call) {
  absl::Status status = CheckJoin(call);
  if (!status.ok()) return call.done(status);
  const Incarnation incarnation{call.request.incarnation()};
  if (incarnation == Incarnation{}) return joins_.Add(call);
  status = membership_.Adopt(call.worker(), incarnation, clock_.Now());
  if (!status.ok()) return call.done(status);
  had_begun_ |= call.request.had_begun();
  AdmitWorker(call, incarnation);
  // Another server may continue from a checkpoint that does not contain the process.
  if (leads()) admission_.Announce(call.worker(), incarnation, clock_.Now(), [](const auto&) {});
}

absl::Status Job::CheckRun(const JoinRequest& request) const {
  const RunId got{request.run()};
  if (got == RunId{} && leads() && request.incarnation() == 0) return absl::OkStatus();
  if (got == RunId{}) {
    return absl::InvalidArgumentError(
        "run: missing (expected the run of server 0's reply to Join, got none)");
  }
  return identity_.CheckRun(absl::StrCat("worker ", request.worker()), got);
}

absl::Status Job::CheckJoin(const JoinCall& call) {
  const JoinRequest& request = call.request;
  if (stopping()) return Stopping();
  RETURN_IF_ERROR(identity_.CheckJob(request.job()));
  RETURN_IF_ERROR(job_match_.Check(request));
  RETURN_IF_ERROR(membership_.CheckNumber(request.worker()));
  RETURN_IF_ERROR(CheckRun(request));
  if (request.incarnation() != 0) RETURN_IF_ERROR(call.may_rejoin());
  RETURN_IF_ERROR(checkpoints_.CheckAgreed());
  if (request.incarnation() == 0 && !leads()) {
    return absl::InvalidArgumentError(
        absl::StrCat("incarnation: only server 0 assigns incarnations (expected one above 0 at "
                     "server ",
                     identity_.server.value, ", got 0)"));
  }
  if (request.incarnation() == 0 && request.worker() >= scaler_.target()) {
    return absl::OutOfRangeError(absl::StrCat(
        "worker: above the number of workers (expected below ", scaler_.target(), ", got ",
        request.worker(), "); an operator can raise it with thinwire scale"));
  }
  RETURN_IF_ERROR(model_.MakeOrCompare(request));
  job_match_.Keep(request);
  if (leads()) deal_lead_.AddTask(request);
  if (!stored_.run().has_value()) {
    stored_.RecordRun(identity_.run, tokens_.key(), request);
    checkpoints_.SaveFirst();
  } else if (const auto examples = model_.NewPlan(request)) {
    ApplyToAll(PlanEvent{*examples}, [] {});
  }
  counters_.SetShardCount(model_.Get()->hosts().size());
  return absl::OkStatus();
}

void Job::Admit(AdmitRequest request, Done<AdmitReply> done) {
  control_.Post(
      [this, request = std::move(request), done = std::move(done)] { HandleAdmit(request, done); });
}

void Job::HandleAdmit(const AdmitRequest& request, const Done<AdmitReply>& done) {
  const absl::Status status = CheckAdmit(request);
  if (!status.ok()) return done(status);
  if (identity_.run != RunId{request.run()}) {
    // No worker has joined this server yet, so processes of another run may be forgotten.
    identity_.run = RunId{request.run()};
    tokens_.set_key(request.token_key());
    membership_ = Membership(options_.rule.max_workers, options_.lease, identity_.generation);
    LOG(INFO) << "admitted to run " << NameOf(identity_.run);
  }
  if (request.begins_again() && membership_.awaits_return()) BeginAgain();
  const WorkerId worker{request.worker()};
  membership_.Announce(worker, Incarnation{request.incarnation()});
  AdmitReply reply;
  reply.set_epoch(identity_.epoch.value);
  reply.set_recovered(recovered_);
  // Without a model there is no run record yet, which will be followed by all members.
  if (!stored_.run().has_value()) return done(reply);
  stored_.RecordMember(worker, [done, reply] { done(reply); });
}

absl::Status Job::CheckAdmit(const AdmitRequest& request) const {
  if (stopping()) return Stopping();
  RETURN_IF_ERROR(identity_.CheckJob(request.job()));
  if (leads() || request.server() != identity_.server.value) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server: another server (expected ", identity_.server.value, " and not the lead, got ",
        request.server(), "); see --addresses of server 0"));
  }
  RETURN_IF_ERROR(membership_.CheckNumber(request.worker()));
  if (request.run() == 0 || request.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("run, incarnation: missing (expected numbers above 0, got ", request.run(),
                     ", ", request.incarnation(), ")"));
  }
  if (request.epoch() != 0 && request.epoch() != identity_.epoch.value && !recovered_) {
    return LostState(identity_.server, Epoch{request.epoch()}, identity_.epoch);
  }
  const RunId got{request.run()};
  if (model_.Get() == nullptr || got == identity_.run) return checkpoints_.CheckAgreed();
  return AnotherRun(ServerId{0}, absl::StrCat("server ", identity_.server.value), got,
                    identity_.run);
}

void Job::AdmitWorker(const JoinCall& call, Incarnation incarnation) {
  if (!first_join_.has_value()) first_join_ = clock_.Now();
  if (const auto more = worker_lines_.Next(clock_.Now())) {
    LOG(INFO) << "worker " << call.worker() << " joined as incarnation " << incarnation << ", "
              << membership_.Live().size() << " of " << scaler_.target() << " workers are live"
              << *more;
  }
  const auto joined = [this, worker = call.worker(), incarnation,
                       done = call.done](std::vector<Effects> effects) {
    // The reply is posted to the control thread, which runs this function. The reply is therefore
    // sent after streams_.Admit(), and the worker cannot send frames earlier.
    control_.Post([this, worker, incarnation, done, effects = std::move(effects)] {
      done(ReplyOf(worker, incarnation, effects));
    });
  };
  stored_.RecordMember(call.worker(), [this, event = JoinEvent{call.worker(), incarnation},
                                       joined] { model_.Get()->SubmitToAll(event, joined); });
  streams_.Admit(call.worker(), incarnation);
  if (clipper_ != nullptr && leads()) clipper_->CallServers();
}

JoinReply Job::ReplyOf(WorkerId worker, Incarnation incarnation,
                       const std::vector<Effects>& effects) {
  JoinReply reply;
  reply.set_incarnation(incarnation.value);
  reply.set_generation(identity_.generation.value);
  reply.set_epoch(identity_.epoch.value);
  reply.set_run(identity_.run.value);
  bool by_round = effects.empty() && scaler_.rule().fold == Fold::kRound;
  for (const Effects& effect : effects) by_round = by_round || effect.join->by_round;
  reply.set_by_round(by_round);
  reply.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  reply.set_workers(options_.rule.workers);
  const auto model = model_.Get();
  for (size_t i = 0; i < effects.size(); ++i) {
    *reply.add_shards() = ShardStateOf(model->hosts()[i]->id(), *effects[i].join);
  }
  if (leads()) {
    deal_lead_.FillIn(reply);
    if (precision_ != nullptr) {
      precision_->Begin(model->partition());
      precision_->FillIn(reply);
    }
    reply.set_token(tokens_.Of(worker, incarnation));
  }
  return reply;
}

void Job::RenewLease(WorkerId worker, Incarnation incarnation) {
  const LeaseState lease = membership_.Renew(worker, incarnation, clock_.Now());
  if (lease == LeaseState::kFenced) {
    // Shards that the newer process has not joined yet count the sender as live again. The newer one
    // may end before it joins them.
    ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  } else if (lease == LeaseState::kReturned) {
    if (const auto more = worker_lines_.Next(clock_.Now())) {
      LOG(INFO) << "worker " << worker << " is live again" << *more;
    }
    ApplyToAll(ReturnEvent{worker, incarnation}, [] {});
  }
  joins_.Answer();
}

void Job::ApplyToAll(const Event& event, std::function<void()> then) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return then();
  model->SubmitToAll(event, [then = std::move(then)](const std::vector<Effects>&) { then(); });
}

void Job::Heartbeat(HeartbeatRequest request, Done<HeartbeatReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    done(HandleHeartbeat(request));
  });
}

absl::StatusOr<HeartbeatReply> Job::HandleHeartbeat(const HeartbeatRequest& request) {
  RETURN_IF_ERROR(membership_.CheckNumber(request.worker()));
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  // A heartbeat with another epoch renews no lease: its sender joined an earlier process of this
  // server, but not this process.
  if (request.epoch() == identity_.epoch.value) {
    RenewLease(worker, incarnation);
    DropDeals(request);
    const bool is_newest = incarnation == membership_.of(worker).incarnation;
    if (leads() && request.has_test() && !stopping() && is_newest) {
      checkpoints_.AddTest(request.test(), !membership_.Live().empty());
    }
    if (precision_ != nullptr && !stopping() && is_newest) {
      if (const absl::Status added = precision_->Add(request); !added.ok()) {
        options_.durable->failed(added);
      }
      AdaptPrecision();
    }
  }
  HeartbeatReply reply;
  reply.set_generation(identity_.generation.value);
  reply.set_epoch(identity_.epoch.value);
  reply.set_fenced(incarnation < membership_.of(worker).incarnation);
  reply.set_unix_micros(
      absl::ToUnixMicros(options_.tracer == nullptr ? unix_clock_.Now() : options_.tracer->Now()));
  if (const auto step = checkpoints_.announced()) reply.set_checkpoint_step(step->value);
  for (WorkerId live : membership_.Live()) reply.add_live(live.value);
  if (leads() && model_.Get() != nullptr) {
    deal_lead_.FillIn(request, reply);
    if (request.asks_evaluator()) {
      const std::optional<WorkerId> evaluator = membership_.AppointEvaluator();
      if (evaluator.has_value()) reply.set_evaluator(evaluator->value);
    }
    if (request.has_stops_before()) StopWorker(request, reply);
    const Member& member = membership_.of(worker);
    const bool drained = member.retired && member.incarnation == incarnation;
    reply.set_retired(drained || worker.value >= scaler_.target());
  }
  return reply;
}

void Job::StopWorker(const HeartbeatRequest& request, HeartbeatReply& reply) {
  const Step own{request.stops_before()};
  membership_.Stop(WorkerId{request.worker()}, Incarnation{request.incarnation()}, own);
  const std::optional<Step> stop = membership_.StopStep();
  if (!stop.has_value()) return;
  // By round, the first workers may have pushed a step that the others have not begun.
  const bool by_round = scaler_.rule().fold == Fold::kRound;
  reply.set_stop_step(by_round ? stop->value : own.value);
}

void Job::DropDeals(const HeartbeatRequest& request) {
  if (!leads() || model_.Get() == nullptr || stopping()) return;
  // The servers and the workers may go back to the newest common checkpoint, but not further.
  Step limit{kLastDealStep};
  if (checkpoints_.aligned()) limit = checkpoints_.kept().value_or(Step{});
  deal_lead_.Drop(request, limit, membership_.Live());
}

void Job::Leave(LeaveRequest request, Done<LeaveReply> done) {
  control_.Post(
      [this, request = std::move(request), done = std::move(done)] { HandleLeave(request, done); });
}

absl::Status Job::CheckLeave(const LeaveRequest& request) const {
  RETURN_IF_ERROR(membership_.CheckNumber(request.worker()));
  if (request.run() != 0) {
    const std::string sender = absl::StrCat("worker ", request.worker());
    RETURN_IF_ERROR(identity_.CheckRun(sender, RunId{request.run()}));
  }
  return checkpoints_.CheckAgreed();
}

void Job::HandleLeave(const LeaveRequest& request, const Done<LeaveReply>& done) {
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  absl::Status status = CheckLeave(request);
  if (status.ok()) status = membership_.Leave(worker, incarnation, request.finished());
  if (!status.ok()) return done(status);
  if (const auto more = worker_lines_.Next(clock_.Now())) {
    LOG(INFO) << "worker " << worker << " left, " << membership_.Live().size()
              << " workers are live" << *more;
  }
  const bool waits = clipper_ != nullptr && membership_.Live().empty();
  stored_.RecordMember(worker, [this, event = LeaveEvent{worker, incarnation}, waits, done] {
    ApplyToAll(event, [this, waits, done] {
      if (!waits) return done(LeaveReply());
      control_.Post(
          [this, done] { clipper_->WhenClosed(clock_.Now(), [done] { done(LeaveReply()); }); });
    });
  });
  DealExamples();
  joins_.Answer();
}

void Job::Scale(ScaleRequest request, Done<ScaleReply> done) {
  control_.Post(
      [this, request = std::move(request), done = std::move(done)] { HandleScale(request, done); });
}

absl::Status Job::CheckRuleChange(const std::string& job) const {
  if (stopping()) return Stopping();
  if (!job.empty()) RETURN_IF_ERROR(identity_.CheckJob(job));
  // A server that goes back to a checkpoint would forget the change.
  RETURN_IF_ERROR(checkpoints_.CheckAgreed());
  if (model_.Get() != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError("no worker has joined yet");
}

void Job::HandleScale(const ScaleRequest& request, const Done<ScaleReply>& done) {
  const absl::Status status = CheckRuleChange(request.job());
  if (!status.ok()) return done(status);
  if (!leads()) return done(NotTheLead(options_.server));
  scaler_.Scale(request.workers(), done);
}

void Job::SetMode(SetModeRequest request, Done<SetModeReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    HandleSetMode(request, done);
  });
}

absl::Status Job::CheckSetMode(const SetModeRequest& request) const {
  RETURN_IF_ERROR(CheckRuleChange(request.job()));
  // Only a lead states its run. An operator calls the lead.
  const bool of_lead = request.run() != 0;
  if (!of_lead) return leads() ? absl::OkStatus() : NotTheLead(options_.server);
  RETURN_IF_ERROR(identity_.CheckFollows());
  return identity_.CheckRun("server 0", RunId{request.run()});
}

void Job::HandleSetMode(const SetModeRequest& request, const Done<SetModeReply>& done) {
  const absl::Status status = CheckSetMode(request);
  if (!status.ok()) return done(status);
  if (!leads()) return scaler_.Follow(request, done);
  scaler_.SetMode(request, [this, done](const absl::StatusOr<SetModeReply>& reply) {
    if (reply.ok() && tuner_.enabled()) {
      LOG(INFO) << "the mode of the operator ends auto_backup and auto_slack in this process";
      tuner_.Stop();
    }
    done(reply);
  });
}

absl::Status Job::CheckMode(const Rule& rule) const {
  Problems problems =
      ModeProblems(rule, options_.sparse_updates, options_.publish, options_.staleness,
                   options_.growth.has_value(), options_.clip_norm);
  const bool keeps_only_checkpoints =
      options_.durable.has_value() && options_.durable->durability == Durability::kCheckpoint;
  if (keeps_only_checkpoints && rule.fold != options_.rule.fold) {
    // By round, the servers make checkpoints of the same step together; by push, each on its own.
    problems.Add("mode", absl::StrCat("not possible with durability: checkpoint (expected ",
                                      rule.fold == Fold::kPush ? "sync or backup" : "ssp or async",
                                      ", got ", std::string(rule.mode()), ")"));
  }
  if (options_.adaptive.has_value() && rule.mode() != "sync") {
    problems.Add("mode", absl::StrCat("not possible with push: adaptive (expected sync, got ",
                                      std::string(rule.mode()), ")"));
  }
  return problems.ToStatus();
}

Problems Job::ModeWarnings(const Consistency& consistency) const {
  if (!options_.config.has_value()) return Problems();
  JobConfig config = *options_.config;
  config.mutable_consistency()->MergeFrom(consistency);
  return StabilityWarnings(config);
}

void Job::Drain(DrainRequest request, Done<DrainReply> done) {
  control_.Post(
      [this, request = std::move(request), done = std::move(done)] { HandleDrain(request, done); });
}

void Job::HandleDrain(const DrainRequest& request, const Done<DrainReply>& done) {
  if (stopping()) return done(Stopping());
  if (!request.job().empty()) {
    const absl::Status status = identity_.CheckJob(request.job());
    if (!status.ok()) return done(status);
  }
  if (!request.has_worker()) {
    LOG(INFO) << "an operator drains this server";
    done(DrainReply());
    return options_.drained();
  }
  if (!leads()) return done(NotTheLead(options_.server));
  absl::Status status = membership_.CheckNumber(request.worker());
  if (status.ok()) status = membership_.Retire(WorkerId{request.worker()});
  if (!status.ok()) return done(status);
  LOG(INFO) << "an operator drains worker " << request.worker();
  stored_.RecordLead([this, worker = WorkerId{request.worker()}, done](const auto& recorded) {
    if (recorded.ok()) return done(DrainReply());
    membership_.CancelRetire(worker);
    done(recorded);
  });
}

void Job::Follow(FollowRequest request, Done<FollowReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    if (stopping()) return done(Stopping());
    done(checkpoints_.Follow(request));
  });
}

void Job::Rollback(RollbackRequest request, Done<RollbackReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    if (stopping()) return done(Stopping());
    checkpoints_.Rollback(request, done);
  });
}

void Job::Clip(ClipRequest request, Done<ClipReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    if (const absl::Status status = CheckClip(request); !status.ok()) return done(status);
    clipper_->Clip(request, done);
  });
}

absl::Status Job::CheckClip(const ClipRequest& request) const {
  if (stopping()) return Stopping();
  RETURN_IF_ERROR(identity_.CheckJob(request.job()));
  RETURN_IF_ERROR(identity_.CheckRun("server 0", RunId{request.run()}));
  RETURN_IF_ERROR(checkpoints_.CheckAgreed());
  if (clipper_ == nullptr || leads()) {
    return absl::FailedPreconditionError(
        "server: not a server that clips for server 0 (expected another server of a job with "
        "clip_norm)");
  }
  if (request.generation() != identity_.generation.value) {
    return absl::FailedPreconditionError(absl::StrCat("generation: another one (expected ",
                                                      identity_.generation.value, ", got ",
                                                      request.generation(), ")"));
  }
  if (!std::isfinite(request.squared_norm()) || request.squared_norm() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "squared_norm: out of range (expected at least 0, got ", request.squared_norm(), ")"));
  }
  return absl::OkStatus();
}

void Job::SaveCheckpoint(SaveCheckpointRequest request, Done<SaveCheckpointReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)]() mutable {
    if (stopping()) return done(Stopping());
    if (request.job().empty()) request.set_job(identity_.job);
    if (request.run() == 0 && !leads()) return done(NotTheLead(options_.server));
    checkpoints_.Save(request, !membership_.Live().empty(), done);
  });
}

void Job::RestoreCheckpoint(RestoreCheckpointRequest request, Done<RestoreCheckpointReply> done) {
  control_.Post([this, request = std::move(request), done = std::move(done)] {
    if (stopping()) return done(Stopping());
    if (!request.job().empty()) {
      const absl::Status status = identity_.CheckJob(request.job());
      if (!status.ok()) return done(status);
    }
    if (!leads()) return done(NotTheLead(options_.server));
    checkpoints_.Restore(request, done);
  });
}

void Job::Status(Done<StatusReply> done) {
  control_.Post([this, done = std::move(done)] {
    GatherStatus({identity_, options_.insecure, model_, membership_, scaler_, deal_lead_,
                  precision_.get(), checkpoints_, counters_, frames_, journal_, clock_},
                 control_, done);
  });
}

void Job::Masters(const MastersRequest& request, size_t index,
                  Done<std::vector<MastersChunk>> done) {
  if (checkpoints_.awaits_rollback()) return done(checkpoints_.CheckAgreed());
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return done(absl::FailedPreconditionError("no worker has joined yet"));
  model->Masters(request, index, std::move(done));
}

std::unique_ptr<Session> Job::Open(StreamLink link) {
  return std::make_unique<Session>(scope_, std::move(link));
}

void Job::Tick(std::function<void()> done) {
  control_.Post([this, done = std::move(done)] {
    HandleTick();
    done();
  });
}

void Job::StartTicking(absl::Duration every) {
  control_.StartTicking(every, [this] { HandleTick(); });
}

void Job::ExcusePause(absl::Duration pause) {
  LOG(WARNING) << "this server did not run for " << absl::Trunc(pause, absl::Milliseconds(1))
               << ": all leases are extended by this time";
  membership_.ExtendLeases(pause);
}

void Job::HandleTick() {
  const absl::Time now = clock_.Now();
  if (!stopping()) checkpoints_.Tick(now);
  if (!checkpoints_.CheckAgreed().ok()) {
    if (!disagreed_since_.has_value()) disagreed_since_ = now;
    return;
  }
  // No worker could join meanwhile.
  if (disagreed_since_.has_value()) membership_.ExtendLeases(now - *disagreed_since_);
  disagreed_since_.reset();
  for (const auto& [worker, incarnation] : membership_.Expire(now)) {
    if (const auto more = worker_lines_.Next(now)) {
      LOG(WARNING) << "worker " << worker << " was silent for " << options_.lease
                   << ": the other workers no longer wait for it" << *more;
    }
    counters_.Update(
        [](StatusReply& counts) { counts.set_lease_expirations(counts.lease_expirations() + 1); });
    ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  }
  const std::vector<WorkerId> live = membership_.Live();
  if (leads() && live.empty() && membership_.awaits_return()) {
    LOG(INFO) << "no earlier worker process has come back: training waits for all workers";
    BeginAgain();
  }
  if (live.size() >= scaler_.target() || start_timed_out_) admission_.set_begins_again(false);
  DealExamples();
  if (leads() && model_.Get() != nullptr) {
    scaler_.Tick(live.empty() || live.back().value < scaler_.target());
    RemindServers(now);
    TuneRule();
    AdaptPrecision();
  }
  admission_.Tick(now);
  if (clipper_ != nullptr) clipper_->Tick(now);
  joins_.Answer();
  OpenAfterTimeout(now);
  SendWaitNotices(now);
}

void Job::DealExamples() {
  // Workers that stop together leave one after the other, and come back together.
  if (membership_.StopStep().has_value()) return;
  if (leads() && !stopping()) deal_lead_.Update(membership_.Live(), joins_.Returning());
}

void Job::TuneRule() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model->hosts().empty() || !tuner_.Due(model->hosts().front()->frontier())) return;
  ShardHost& first = *model->hosts().front();
  first.Post([this, model, &first](Shard& shard) {
    const StepTimes& times = first.MeasureSteps();
    if (shard.next_rule().has_value()) return;
    control_.Post(
        [this, times, rule = shard.rule(), frontier = shard.frontier(), noise = shard.noise()] {
          if (stopping() || !tuner_.Due(frontier)) return;
          const auto chosen = tuner_.Choose(rule, frontier, times, noise);
          if (chosen.has_value()) scaler_.Adjust(rule, chosen->rule, chosen->reason);
        });
  });
}

void Job::AdaptPrecision() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (precision_ == nullptr || model == nullptr || stopping()) return;
  const auto returns_to =
      precision_->Update(model->frontier(), checkpoints_.kept(), checkpoints_.announced());
  if (!returns_to.ok()) return options_.durable->failed(returns_to.status());
  checkpoints_.Plan(precision_->snapshot());
  if (returns_to->has_value()) checkpoints_.ReturnTo(**returns_to);
}

void Job::SendWaitNotices(absl::Time now) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || now - last_wait_notices_ < kWaitNoticeInterval) return;
  last_wait_notices_ = now;
  model->SendWaitNotices();
}

void Job::RemindServers(absl::Time now) {
  if (now - last_reminder_ < kReminderInterval) return;
  last_reminder_ = now;
  scaler_.Remind();
}

void Job::OpenAfterTimeout(absl::Time now) {
  if (start_timed_out_ || !first_join_.has_value()) return;
  // After a rollback to the first step, the workers that come back do so within a lease.
  const absl::Duration patience = had_begun_ ? options_.lease : options_.start_timeout;
  if (now - *first_join_ < patience) return;
  start_timed_out_ = true;
  const size_t live_count = membership_.Live().size();
  const uint32_t target = scaler_.target();
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const auto is_shut = [](const ShardHost&, const Shard& shard) { return shard.open() ? 0 : 1; };
  model->ForAllShards<int>(is_shut, [model, patience, live_count,
                                     target](const std::vector<int>& shut) {
    if (std::ranges::find(shut, 1) == shut.end()) return;
    model->SubmitToAll(OpenEvent{}, [](const std::vector<Effects>&) {});
    LOG(WARNING) << "no other worker has joined for " << patience << ": training begins with the "
                 << live_count << " of " << target << " workers that are live";
  });
}

void Job::Stop(std::function<void()> done) {
  control_.Post([this, done = std::move(done)] { HandleStop(done); });
}

void Job::HandleStop(std::function<void()> done) {
  stopping_ = true;
  joins_.Cancel(Stopping());
  admission_.Cancel(Stopping());
  checkpoints_.CancelSaves(Stopping());
  if (clipper_ != nullptr) clipper_->Stop(Stopping());
  const auto end = [this, done = std::move(done)](const std::vector<int>&) {
    for (const auto& stream : streams_.All()) stream->EndAfterFlush(Stopping());
    done();
  };
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return end({});
  journal_.Flush();  // posts the events of all records to the strands
  // A server that is started again begins the present trial again.
  if (precision_ == nullptr || precision_->MaySave(model->frontier())) checkpoints_.SaveLast();
  // The end is posted to the control thread, behind the last part of the checkpoint there.
  model->ForAllShards<int>(
      [](ShardHost&, Shard&) { return 0; },
      [this, end](const std::vector<int>& all) { control_.Post([=] { end(all); }); });
}

}  // namespace thinwire
