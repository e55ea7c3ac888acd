#include "server/edge/job.h"

#include <glog/logging.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/quoted.h"
#include "common/status_macros.h"
#include "server/core/shard.h"
#include "server/durable/checkpoint.h"
#include "server/edge/model/convert.h"

namespace thinwire {
namespace {

constexpr absl::Duration kWaitNoticeInterval = absl::Seconds(2);
// A server that misses a step keeps its last two common checkpoints until the next step.
constexpr size_t kKeptAlignedCheckpoints = kKeptCheckpoints + 1;

uint32_t ThreadCount(uint32_t wanted) {
  return wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

absl::Status CheckWorker(uint32_t worker, const Rule& rule) {
  if (worker < rule.max_workers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("worker: not a worker of this job (expected below ", rule.max_workers, ", got ",
                   worker, ")"));
}

ShardOptions ShardOptionsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .generation = options.generation,
          .sparse_updates = options.sparse_updates,
          .publish = options.publish,
          .checkpointed = options.durable.has_value(),
          .memory = options.memory};
}

AdmitRequest AdmissionOf(const JobOptions& options) {
  AdmitRequest request;
  request.set_job(options.name);
  request.set_run(options.run.value);
  return request;
}

std::string NameOf(RunId run) {
  return run == RunId{} ? "none" : absl::StrCat(absl::Hex(run.value, absl::kZeroPad16));
}

// Returns the error for a request that belongs to run GOT, at a server that belongs to run
// EXPECTED. SERVER is the server that lost its state. SENDER is the process that belongs to run
// GOT.
absl::Status AnotherRun(ServerId server, std::string_view sender, RunId expected, RunId got) {
  return absl::FailedPreconditionError(
      absl::StrCat("server ", server.value, " lost its state: ", std::string(sender),
                   " belongs to another run (expected run ", NameOf(expected), ", got ",
                   NameOf(got), "); restart all servers to begin a new run"));
}

absl::Status AnotherJob(const std::string& expected, const std::string& got) {
  return absl::FailedPreconditionError(
      absl::StrCat("job: another job (expected ", Quoted(expected), ", got ", Quoted(got), ")"));
}

absl::Status Abandoned() { return absl::CancelledError("the caller stopped waiting"); }

absl::Status Stopping() { return absl::UnavailableError("this server is stopping"); }

struct ShardReport {
  ShardStatus status;
  std::vector<Step> next;  // for each worker: its `next` (docs/glossary.md)
};

ShardReport ReportOf(const ShardHost& host, const Shard& shard, uint32_t worker_count) {
  ShardReport report;
  report.status.set_shard(host.id().value);
  report.status.set_values(host.value_count());
  report.status.set_open(shard.open());
  report.status.set_version(shard.version().value);
  report.status.set_frontier(shard.frontier().value);
  report.status.set_saturated_updates(shard.saturated_updates());
  for (uint32_t w = 0; w < worker_count; ++w) report.next.push_back(shard.next(WorkerId{w}));
  return report;
}

// Adds the status of every shard and of every worker that ever joined to REPLY.
void FillIn(const std::vector<ShardReport>& reports, const Membership& membership,
            uint32_t worker_count, absl::Time now, StatusReply& reply) {
  for (const ShardReport& report : reports) *reply.add_shards() = report.status;
  for (uint32_t w = 0; w < worker_count; ++w) {
    const Member& member = membership.of(WorkerId{w});
    if (member.incarnation.value == 0) continue;
    WorkerStatus& status = *reply.add_workers();
    status.set_worker(w);
    status.set_incarnation(member.incarnation.value);
    status.set_live(member.live());
    status.set_left(member.left);
    status.set_heard_seconds_ago(absl::ToDoubleSeconds(now - member.heard));
    if (reports.empty()) continue;
    Step smallest = reports[0].next[w];
    for (const ShardReport& report : reports) smallest = std::min(smallest, report.next[w]);
    status.set_next(smallest.value);
  }
}

}  // namespace

template <typename Work>
void Job::Post(Work work) {
  boost::asio::post(control_, [this, work = std::move(work)]() mutable {
    ExcusePause();
    work();
  });
}

Job::Job(JobOptions options, std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
         Clock& clock, std::unique_ptr<Peers> peers)
    : options_(std::move(options)),
      optimizer_(std::move(optimizer)),
      schedule_(std::move(schedule)),
      clock_(clock),
      memory_plan_{.budget_bytes = options_.memory_budget_bytes,
                   .worker_count = options_.rule.workers},
      streams_(options_.rule.max_workers, [this] { AskForValues(); }),
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
                   Post([=, this] { RenewLease(worker, incarnation); });
                 }},
      shards_pool_(ThreadCount(options_.thread_count)),
      model_(
          options_.server, options_.server_count, ShardOptionsOf(options_), memory_plan_, frames_,
          {*optimizer_, schedule_, shards_pool_, streams_, counters_, journal_, options_.tracer}),
      run_(leads() ? options_.run : RunId{}),
      membership_(options_.rule.max_workers, options_.lease, options_.generation),
      job_match_(options_.config),
      stored_({.job = options_.name,
               .server = options_.server,
               .generation = options_.generation,
               .max_workers = options_.rule.max_workers},
              {model_, membership_, job_match_, dealer_, scaler_, journal_}),
      last_wait_notices_(clock.Now()),
      admission_(AdmissionOf(options_), options_.server_count, peers.get(),
                 [this](std::function<void()> work) { Post(std::move(work)); }),
      dealer_(options_.rule.workers, options_.lease),
      scaler_(
          options_.name, options_.rule, options_.server_count, peers.get(),
          [this](std::function<void()> work) { Post(std::move(work)); },
          [this](const Rule& rule) { ApplyToAll(RuleEvent{rule}, [] {}); }),
      peers_(std::move(peers)) {}

Job::~Job() {
  control_.stop();
  control_.join();
  checkpointer_.reset();
  journal_.Stop();
  // Blocks until all work that was posted to the shards is finished.
  shards_pool_.join();
}

absl::Status Job::Recover() {
  if (!options_.durable.has_value()) return absl::OkStatus();
  const DurableOptions& durable = *options_.durable;
  RETURN_IF_ERROR(stored_.Recover(durable, clock_.Now()));
  const auto post = [this](std::function<void()> work) { Post(std::move(work)); };
  checkpointer_ = std::make_unique<Checkpointer>(
      *durable.files,
      Checkpointer::Options{
          .folder = durable.folder,
          .interval = durable.checkpoint_interval,
          .failure_interval = durable.failure_interval,
          .kept = aligns_checkpoints() ? kKeptAlignedCheckpoints : kKeptCheckpoints,
          .tracer = options_.tracer},
      journal_, clock_, post, [this] { return stored_.Head(); });
  recovered_ = stored_.run().has_value();
  if (aligns_checkpoints() && leads()) {
    lead_ = std::make_unique<CheckpointLead>(
        options_.name, options_.server_count, peers_.get(), post,
        CheckpointLead::Server{
            .checkpoints = [this] { return OwnCheckpoints(); },
            .roll_back =
                [this](const RollbackOrder& order) {
                  GoBack(order.step, order.generation, [](const absl::Status&) {});
                },
            .fail = [this](const absl::Status& status) { options_.durable->failed(status); }},
        /*settled=*/!recovered_);
  }
  if (!recovered_) return absl::OkStatus();
  dealer_.Resume(clock_.Now());
  run_ = stored_.run()->run;
  admission_.set_run(run_);
  counters_.SetShardCount(model_.Get()->hosts().size());
  counters_.Update([](StatusReply& counts) { counts.set_recovered(true); });
  awaits_rollback_ = aligns_checkpoints() && durable.awaits_rollback;
  if (awaits_rollback_) {
    LOG(INFO) << CheckAgreed().message();
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
  } else {
    // The run ended or was stopped in order. Training begins again as at the start of the job.
    ApplyToAll(ShutEvent{}, [] {});
  }
}

void Job::Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done) {
  Post([this, call = JoinCall{std::move(request), std::move(abandoned), std::move(done),
                              absl::Time()}] { HandleJoin(call); });
}

void Job::HandleJoin(JoinCall call) {
  absl::Status status = CheckJoin(call.request);
  if (!status.ok()) return call.done(status);
  const Incarnation incarnation{call.request.incarnation()};
  call.arrival = clock_.Now();
  if (incarnation.value == 0) {
    if (!TryAnswer(call)) waiting_joins_.push_back(std::move(call));
    return;
  }
  status = membership_.Adopt(call.worker(), incarnation, clock_.Now());
  if (!status.ok()) return call.done(status);
  AdmitWorker(call, incarnation);
}

absl::Status Job::CheckRun(const JoinRequest& request) const {
  const RunId got{request.run()};
  if (got == RunId{} && leads() && request.incarnation() == 0) return absl::OkStatus();
  if (got == RunId{}) {
    return absl::InvalidArgumentError(
        "run: missing (expected the run of server 0's reply to Join, got none)");
  }
  if (got == run_) return absl::OkStatus();
  return AnotherRun(options_.server, absl::StrCat("worker ", request.worker()), run_, got);
}

absl::Status Job::CheckJoin(const JoinRequest& request) {
  if (stopping_) return Stopping();
  if (request.job() != options_.name) {
    return AnotherJob(options_.name, request.job());
  }
  RETURN_IF_ERROR(job_match_.Check(request));
  RETURN_IF_ERROR(CheckWorker(request.worker(), options_.rule));
  RETURN_IF_ERROR(CheckRun(request));
  RETURN_IF_ERROR(CheckAgreed());
  if (request.incarnation() == 0 && !leads()) {
    return absl::InvalidArgumentError(
        absl::StrCat("incarnation: only server 0 assigns incarnations (expected one above 0 at "
                     "server ",
                     options_.server.value, ", got 0)"));
  }
  if (request.incarnation() == 0 && request.worker() >= scaler_.target()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker: above the number of workers (expected below ", scaler_.target(), ", got ",
        request.worker(), "); an operator can raise it with thinwire scale"));
  }
  RETURN_IF_ERROR(model_.MakeOrCompare(request));
  job_match_.Keep(request);
  if (!stored_.run().has_value()) {
    stored_.RecordRun(run_, request);
    // The first values are saved as soon as the shards have them.
    if (keeps_only_checkpoints()) SaveAt(Step{});
  }
  counters_.SetShardCount(model_.Get()->hosts().size());
  if (!first_join_.has_value()) first_join_ = clock_.Now();
  return absl::OkStatus();
}

bool Job::TryAnswer(const JoinCall& call) {
  if (call.abandoned()) {
    call.done(Abandoned());
    return true;
  }
  const Member before = membership_.of(call.worker());
  const auto assigned = membership_.Assign(call.worker(), call.arrival, clock_.Now());
  if (!assigned.ok()) {
    call.done(assigned.status());
  } else if (assigned->has_value()) {
    const Step next = NextOf(call.worker());
    // By round, the other workers may have finished one step more.
    const uint64_t ahead_count = options_.rule.fold == Fold::kRound ? 1 : 0;
    if (before.incarnation != Incarnation{} && LargestNext() > next + ahead_count) {
      replaced_.emplace(call.worker(), next);
    }
    Announce(call, **assigned);
  } else {
    return false;
  }
  return true;
}

void Job::AnswerWaitingJoins() {
  std::erase_if(waiting_joins_, [this](const JoinCall& call) { return TryAnswer(call); });
}

void Job::Announce(const JoinCall& call, Incarnation incarnation) {
  admission_.Announce(call.worker(), incarnation, clock_.Now(),
                      [this, call, incarnation](absl::Status admitted) {
                        if (call.abandoned()) admitted = Abandoned();
                        if (admitted.ok()) {
                          membership_.Renew(call.worker(), incarnation, clock_.Now());
                          return AdmitWorker(call, incarnation);
                        }
                        // Frees the number. Fails if a newer process has taken it already.
                        membership_.Leave(call.worker(), incarnation).IgnoreError();
                        call.done(admitted);
                      });
}

void Job::Admit(AdmitRequest request, Done<AdmitReply> done) {
  Post(
      [this, request = std::move(request), done = std::move(done)] { HandleAdmit(request, done); });
}

void Job::HandleAdmit(const AdmitRequest& request, const Done<AdmitReply>& done) {
  const absl::Status status = CheckAdmit(request);
  if (!status.ok()) return done(status);
  if (run_ != RunId{request.run()}) {
    // No worker has joined this server yet, so processes of another run may be forgotten.
    run_ = RunId{request.run()};
    membership_ = Membership(options_.rule.max_workers, options_.lease, options_.generation);
    LOG(INFO) << "admitted to run " << NameOf(run_);
  }
  const WorkerId worker{request.worker()};
  membership_.Announce(worker, Incarnation{request.incarnation()});
  AdmitReply reply;
  reply.set_epoch(options_.epoch.value);
  reply.set_recovered(recovered_);
  // Without a model there is no run record yet, which will be followed by all members.
  if (!stored_.run().has_value()) return done(reply);
  stored_.RecordMember(worker, [done, reply] { done(reply); });
}

absl::Status Job::CheckAdmit(const AdmitRequest& request) const {
  if (stopping_) return Stopping();
  if (request.job() != options_.name) return AnotherJob(options_.name, request.job());
  if (leads() || request.server() != options_.server.value) {
    return absl::InvalidArgumentError(absl::StrCat(
        "server: another server (expected ", options_.server.value, " and not the lead, got ",
        request.server(), "); see --addresses of server 0"));
  }
  RETURN_IF_ERROR(CheckWorker(request.worker(), options_.rule));
  if (request.run() == 0 || request.incarnation() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("run, incarnation: missing (expected numbers above 0, got ", request.run(),
                     ", ", request.incarnation(), ")"));
  }
  if (request.epoch() != 0 && request.epoch() != options_.epoch.value && !recovered_) {
    return LostState(options_.server, Epoch{request.epoch()}, options_.epoch);
  }
  const RunId got{request.run()};
  if (model_.Get() == nullptr || got == run_) return CheckAgreed();
  return AnotherRun(ServerId{0}, absl::StrCat("server ", options_.server.value), got, run_);
}

absl::Status Job::CheckAgreed() const {
  if (awaits_rollback_) {
    return absl::UnavailableError(absl::StrCat("server ", options_.server.value, " waits for ",
                                               leads() ? "all servers" : "server 0",
                                               " to choose the checkpoint to continue from"));
  }
  if (lead_ != nullptr && !lead_->settled()) {
    return absl::UnavailableError(
        "server 0 waits until all servers continue from the same checkpoint");
  }
  return absl::OkStatus();
}

absl::Status Job::CheckFollower(const std::string& job) const {
  if (stopping_) return Stopping();
  if (job != options_.name) return AnotherJob(options_.name, job);
  if (leads()) {
    return absl::InvalidArgumentError(
        "server: this is server 0, which leads (expected another server); see --addresses of "
        "server "
        "0");
  }
  if (aligns_checkpoints()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("server ", options_.server.value,
                   ": makes no checkpoints together with the other servers (expected durability: "
                   "checkpoint and mode sync or backup)"));
}

void Job::Follow(FollowRequest request, Done<FollowReply> done) {
  Post([this, request = std::move(request), done = std::move(done)] {
    HandleFollow(request, done);
  });
}

void Job::HandleFollow(const FollowRequest& request, const Done<FollowReply>& done) {
  if (const absl::Status status = CheckFollower(request.job()); !status.ok()) return done(status);
  const bool same_run = request.run() == run_.value;
  if (same_run && request.generation() < options_.generation.value) {
    return done(absl::FailedPreconditionError(
        absl::StrCat("generation: an older one (expected at least ", options_.generation.value,
                     ", got ", request.generation(), ")")));
  }
  const bool same = same_run && request.generation() == options_.generation.value;
  if (same && !awaits_rollback_ && request.has_checkpoint_step()) {
    SaveAt(Step{request.checkpoint_step()});
  }
  const ServerCheckpoints own = OwnCheckpoints();
  FollowReply reply;
  reply.set_epoch(options_.epoch.value);
  reply.set_run(own.run.value);
  reply.set_generation(own.generation.value);
  reply.set_awaits_rollback(own.awaits_rollback);
  for (const Step step : own.steps) reply.add_checkpoint_steps(step.value);
  done(reply);
}

void Job::Rollback(RollbackRequest request, Done<RollbackReply> done) {
  Post([this, request = std::move(request), done = std::move(done)] {
    HandleRollback(request, done);
  });
}

void Job::HandleRollback(const RollbackRequest& request, const Done<RollbackReply>& done) {
  absl::Status status = CheckFollower(request.job());
  const RunId run{request.run()};
  const Generation generation{request.generation()};
  const Step step{request.step()};
  if (status.ok() && run != run_) status = AnotherRun(options_.server, "server 0", run_, run);
  if (status.ok() && generation <= options_.generation) {
    status = absl::FailedPreconditionError(
        absl::StrCat("generation: not a newer one (expected above ", options_.generation.value,
                     ", got ", generation.value, ")"));
  }
  if (status.ok() && std::ranges::count(checkpointer_->steps(), step) == 0) {
    status = absl::FailedPreconditionError(
        absl::StrCat("server ", options_.server.value, ": has no checkpoint of step ", step.value));
  }
  if (!status.ok()) return done(status);
  GoBack(step, generation, [done](const absl::Status& result) {
    if (!result.ok()) return done(result);
    done(RollbackReply());
  });
}

ServerCheckpoints Job::OwnCheckpoints() const {
  return {.run = run_,
          .generation = options_.generation,
          .awaits_rollback = awaits_rollback_,
          .steps = checkpointer_->steps()};
}

void Job::SaveAt(Step step) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || (save_step_.has_value() && step <= *save_step_)) return;
  if (checkpointer_->Start(*model, step)) save_step_ = step;
}

void Job::GoBack(Step step, Generation generation, std::function<void(const absl::Status&)> done) {
  LOG(INFO) << "rollback: going back to step " << step << " under generation " << generation;
  stopping_ = true;
  checkpointer_->RollBack(step, generation, [this, done = std::move(done)](const auto& status) {
    done(status);
    if (status.ok()) return options_.durable->restart();
    options_.durable->failed(status);
  });
}

void Job::AdmitWorker(const JoinCall& call, Incarnation incarnation) {
  if (const auto more = worker_lines_.Next(clock_.Now())) {
    LOG(INFO) << "worker " << call.worker() << " joined as incarnation " << incarnation << ", "
              << membership_.Live().size() << " of " << scaler_.target() << " workers are live"
              << *more;
  }
  const auto joined = [this, incarnation, done = call.done](std::vector<Effects> effects) {
    // The reply is posted to the control thread, which runs this function. The reply is therefore
    // sent after streams_.Admit(), and the worker cannot send frames earlier.
    Post([this, incarnation, done, effects = std::move(effects)] {
      done(ReplyOf(incarnation, effects));
    });
  };
  stored_.RecordMember(call.worker(), [this, event = JoinEvent{call.worker(), incarnation},
                                       joined] { model_.Get()->SubmitToAll(event, joined); });
  streams_.Admit(call.worker(), incarnation);
}

JoinReply Job::ReplyOf(Incarnation incarnation, const std::vector<Effects>& effects) {
  JoinReply reply;
  reply.set_incarnation(incarnation.value);
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  reply.set_run(run_.value);
  reply.set_by_round(options_.rule.fold == Fold::kRound);
  reply.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  reply.set_workers(options_.rule.workers);
  const auto model = model_.Get();
  for (size_t i = 0; i < effects.size(); ++i) {
    *reply.add_shards() = ShardStateOf(model->hosts()[i]->id(), *effects[i].join);
  }
  if (leads()) {
    StoreProgress();
    dealer_.FillIn(reply);
  }
  return reply;
}

void Job::AskForValues() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return;
  for (const std::unique_ptr<ShardHost>& host : model->hosts()) {
    host->Post([&host = *host](Shard&) { host.AskForValues(); });
  }
}

void Job::RenewLease(WorkerId worker, Incarnation incarnation) {
  if (membership_.Renew(worker, incarnation, clock_.Now()) == LeaseState::kReturned) {
    if (const auto more = worker_lines_.Next(clock_.Now())) {
      LOG(INFO) << "worker " << worker << " is live again" << *more;
    }
    ApplyToAll(ReturnEvent{worker, incarnation}, [] {});
  }
  AnswerWaitingJoins();
}

void Job::ApplyToAll(const Event& event, std::function<void()> then) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return then();
  model->SubmitToAll(event, [then = std::move(then)](const std::vector<Effects>&) { then(); });
}

void Job::Heartbeat(HeartbeatRequest request, Done<HeartbeatReply> done) {
  Post([this, request = std::move(request), done = std::move(done)] {
    HandleHeartbeat(request, done);
  });
}

void Job::HandleHeartbeat(const HeartbeatRequest& request, const Done<HeartbeatReply>& done) {
  absl::Status status = CheckWorker(request.worker(), options_.rule);
  if (!status.ok()) return done(status);
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  // A heartbeat with another epoch renews no lease: its sender joined an earlier process of this
  // server, but not this process.
  if (request.epoch() == options_.epoch.value) RenewLease(worker, incarnation);
  HeartbeatReply reply;
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  reply.set_fenced(incarnation < membership_.of(worker).incarnation);
  reply.set_unix_micros(
      absl::ToUnixMicros(options_.tracer == nullptr ? absl::Now() : options_.tracer->Now()));
  if (lead_ != nullptr && lead_->announced().has_value()) {
    reply.set_checkpoint_step(lead_->announced()->value);
  }
  for (WorkerId live : membership_.Live()) reply.add_live(live.value);
  if (leads() && model_.Get() != nullptr) {
    dealer_.Heard(worker, request.dealt_until());
    StoreProgress();
    dealer_.FillIn(request.deal_count(), reply);
    reply.set_retired(worker.value >= scaler_.target());
  }
  done(reply);
}

void Job::Leave(LeaveRequest request, Done<LeaveReply> done) {
  Post(
      [this, request = std::move(request), done = std::move(done)] { HandleLeave(request, done); });
}

void Job::HandleLeave(const LeaveRequest& request, const Done<LeaveReply>& done) {
  absl::Status status = CheckWorker(request.worker(), options_.rule);
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  if (status.ok() && request.run() != 0 && request.run() != run_.value) {
    status = AnotherRun(options_.server, absl::StrCat("worker ", request.worker()), run_,
                        RunId{request.run()});
  }
  if (status.ok()) status = CheckAgreed();
  if (status.ok()) status = membership_.Leave(worker, incarnation);
  if (!status.ok()) return done(status);
  if (const auto more = worker_lines_.Next(clock_.Now())) {
    LOG(INFO) << "worker " << worker << " left, " << membership_.Live().size()
              << " workers are live" << *more;
  }
  stored_.RecordMember(worker, [this, event = LeaveEvent{worker, incarnation}, done] {
    ApplyToAll(event, [done] { done(LeaveReply()); });
  });
  DealExamples();
  AnswerWaitingJoins();
}

void Job::Scale(ScaleRequest request, Done<ScaleReply> done) {
  Post(
      [this, request = std::move(request), done = std::move(done)] { HandleScale(request, done); });
}

void Job::HandleScale(const ScaleRequest& request, const Done<ScaleReply>& done) {
  if (stopping_) return done(Stopping());
  if (!request.job().empty() && request.job() != options_.name) {
    return done(AnotherJob(options_.name, request.job()));
  }
  if (model_.Get() == nullptr) {
    return done(absl::FailedPreconditionError("no worker has joined yet"));
  }
  if (leads()) return scaler_.Scale(request.workers(), done);
  // Only the lead states the job. An operator calls the lead.
  if (!request.job().empty()) return scaler_.Follow(request.workers(), done);
  done(absl::InvalidArgumentError(
      absl::StrCat("server: not the lead (expected server 0, the first of --addresses, got server ",
                   options_.server.value, ")")));
}

void Job::Status(Done<StatusReply> done) {
  Post([this, done = std::move(done)] { HandleStatus(done); });
}

void Job::HandleStatus(const Done<StatusReply>& done) {
  StatusReply reply;
  reply.set_job(options_.name);
  reply.set_server(options_.server.value);
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  reply.set_run(run_.value);
  reply.set_target_workers(scaler_.target());
  counters_.FillIn(reply);
  reply.set_buffered_bytes(frames_.held_bytes());
  if (journal_.logs()) {
    const EventLog::Counts counts = journal_.counts();
    reply.set_log_records(counts.records);
    reply.set_log_bytes(counts.bytes);
    reply.set_log_commits(counts.commits);
  }
  if (checkpointer_ != nullptr) reply.set_checkpoints(checkpointer_->completed_count());
  reply.set_awaits_rollback(awaits_rollback_);
  const std::shared_ptr<const HostedModel> model = model_.Get();
  reply.set_sealed(model != nullptr);
  if (model == nullptr) return done(std::move(reply));
  const uint32_t worker_count = options_.rule.max_workers;
  model->ForAllShards<ShardReport>(
      [worker_count](const ShardHost& host, const Shard& shard) {
        return ReportOf(host, shard, worker_count);
      },
      [this, worker_count, reply, done](std::vector<ShardReport> reports) {
        Post([this, worker_count, reply, done, reports = std::move(reports)]() mutable {
          FillIn(reports, membership_, worker_count, clock_.Now(), reply);
          done(std::move(reply));
        });
      });
}

void Job::Masters(size_t index, Done<std::vector<MastersChunk>> done) {
  if (awaits_rollback_) return done(CheckAgreed());
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return done(absl::FailedPreconditionError("no worker has joined yet"));
  if (index >= model->hosts().size()) return done(std::vector<MastersChunk>());
  ShardHost& host = *model->hosts()[index];
  host.Post([&host, model, done = std::move(done)](Shard& shard) {
    if (shard.seeded()) {
      return done(MastersChunksOf(model->partition(), host.id(), shard.masters()));
    }
    done(absl::FailedPreconditionError(
        absl::StrCat("shard ", host.id().value, ": has no values yet")));
  });
}

std::unique_ptr<Session> Job::Open(StreamLink link) {
  return std::make_unique<Session>(scope_, std::move(link));
}

void Job::Tick(std::function<void()> done) {
  Post([this, done = std::move(done)] {
    HandleTick();
    done();
  });
}

void Job::ExcusePause() {
  // A job that does not tick has no reason to run.
  if (!last_run_.has_value()) return;
  const absl::Time now = clock_.Now();
  const absl::Duration pause = now - *std::exchange(last_run_, now);
  // A shorter pause expires no lease, because a worker sends about three heartbeats per lease.
  if (pause <= options_.lease / 2) return;
  LOG(WARNING) << "this server did not run for " << absl::Trunc(pause, absl::Milliseconds(1))
               << ": all leases are extended by this time";
  membership_.ExtendLeases(pause);
}

void Job::HandleTick() {
  ExcusePause();
  const absl::Time now = clock_.Now();
  TickCheckpoints(now);
  if (!CheckAgreed().ok()) {
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
  DealExamples();
  const std::vector<WorkerId> live = membership_.Live();
  scaler_.Tick(leads() && (live.empty() || live.back().value < scaler_.target()));
  admission_.Tick(now);
  AnswerWaitingJoins();
  OpenAfterTimeout(now);
  SendWaitNotices(now);
}

void Job::TickCheckpoints(absl::Time now) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (checkpointer_ == nullptr || model == nullptr || stopping_) return;
  if (!aligns_checkpoints()) return checkpointer_->StartIfDue(now, *model);
  if (lead_ == nullptr) return;
  lead_->Tick(now, model->frontier(), checkpointer_->interval());
  if (lead_->announced().has_value()) SaveAt(*lead_->announced());
}

void Job::DealExamples() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (!leads() || stopping_ || model == nullptr || model->hosts().empty()) return;
  StoreProgress();
  const auto is_open = [](const auto& host) { return host->open(); };
  if (!std::ranges::all_of(model->hosts(), is_open)) return;
  const auto deal = dealer_.Propose(
      DealMembers(), [this](WorkerId worker) { return NextOf(worker); }, clock_.Now());
  if (!deal.has_value()) return;
  if (const auto more = worker_lines_.Next(clock_.Now())) {
    LOG(INFO) << "from step " << deal->step() << " on, the examples are dealt among "
              << deal->members_size() << " workers" << *more;
  }
  journal_.Append(DealRecord{*deal}, [this](LogSequence) { Post([this] { dealer_.Commit(); }); });
}

void Job::StoreProgress() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || model->hosts().empty()) return;
  dealer_.Advance(LargestNext(), clock_.Now());
}

Step Job::LargestNext() const {
  Step largest;
  for (const auto& host : model_.Get()->hosts()) largest = std::max(largest, host->largest_next());
  return largest;
}

std::vector<WorkerId> Job::DealMembers() {
  const std::vector<WorkerId> dealt = dealer_.members();
  std::erase_if(replaced_, [&dealt](const auto& replaced) {
    return !std::ranges::binary_search(dealt, replaced.first);
  });
  std::vector<WorkerId> members = membership_.Live();
  std::erase_if(members, [this](WorkerId worker) { return replaced_.contains(worker); });
  // A process that replaces a lost one within its lease, and begins at the next step, changes nothing.
  for (const JoinCall& call : waiting_joins_) {
    if (membership_.of(call.worker()).expired) members.push_back(call.worker());
  }
  std::ranges::sort(members);
  const auto repeated = std::ranges::unique(members);
  members.erase(repeated.begin(), repeated.end());
  return members;
}

Step Job::NextOf(WorkerId worker) const {
  if (const auto replaced = replaced_.find(worker); replaced != replaced_.end()) {
    return replaced->second;
  }
  std::optional<Step> smallest;
  for (const auto& host : model_.Get()->hosts()) {
    smallest = std::min(smallest.value_or(host->next(worker)), host->next(worker));
  }
  return smallest.value_or(Step{0});
}

void Job::SendWaitNotices(absl::Time now) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || now - last_wait_notices_ < kWaitNoticeInterval) return;
  last_wait_notices_ = now;
  for (const auto& host : model->hosts()) {
    host->Post([&host = *host](Shard&) { host.SendWaitNotices(); });
  }
}

void Job::OpenAfterTimeout(absl::Time now) {
  if (start_timed_out_ || !first_join_.has_value()) return;
  if (now - *first_join_ < options_.start_timeout) return;
  start_timed_out_ = true;
  const size_t live_count = membership_.Live().size();
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const auto is_shut = [](const ShardHost&, const Shard& shard) { return shard.open() ? 0 : 1; };
  model->ForAllShards<int>(is_shut, [this, model, live_count](const std::vector<int>& shut) {
    if (std::ranges::find(shut, 1) == shut.end()) return;
    model->SubmitToAll(OpenEvent{}, [](const std::vector<Effects>&) {});
    LOG(WARNING) << "start_timeout of " << options_.start_timeout
                 << " is over: training begins with the " << live_count << " of "
                 << scaler_.target() << " workers that are live";
  });
}

void Job::StartTicking(absl::Duration every) {
  Post([this, every] {
    last_run_ = clock_.Now();
    TickEvery(every);
  });
}

void Job::TickEvery(absl::Duration every) {
  ticker_.expires_after(absl::ToChronoNanoseconds(every));
  ticker_.async_wait([this, every](const boost::system::error_code& error) {
    if (error) return;
    HandleTick();
    TickEvery(every);
  });
}

void Job::Stop(std::function<void()> done) {
  Post([this, done = std::move(done)] { HandleStop(done); });
}

void Job::HandleStop(std::function<void()> done) {
  stopping_ = true;
  for (const JoinCall& call : waiting_joins_) call.done(Stopping());
  waiting_joins_.clear();
  admission_.Cancel(Stopping());
  const auto end = [this, done = std::move(done)](const std::vector<int>&) {
    for (const auto& stream : streams_.All()) stream->EndAfterFlush(Stopping());
    done();
  };
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return end({});
  journal_.Flush();  // posts the events of all records to the strands
  if (checkpointer_ != nullptr && !awaits_rollback_) checkpointer_->StartLast(*model);
  // The end is posted to the control thread, behind the last part of the checkpoint there.
  model->ForAllShards<int>([](ShardHost&, Shard&) { return 0; },
                           [this, end](const std::vector<int>& all) { Post([=] { end(all); }); });
}

}  // namespace thinwire
