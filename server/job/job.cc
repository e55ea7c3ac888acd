#include "server/job/job.h"

#include <glog/logging.h>

#include <ranges>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/quoted.h"
#include "server/core/shard.h"
#include "server/job/job_status.h"

namespace thinwire {
namespace {

constexpr absl::Duration kWaitNoticeInterval = absl::Seconds(2);
constexpr absl::Duration kHastenedTick = absl::Milliseconds(10);

Departure DepartureOf(const LeaveRequest& request) {
  return {.finished = request.finished(),
          .failed = request.failed(),
          .diverged = Shortened(absl::CEscape(request.diverged()))};
}

}  // namespace

Job::Job(JobOptions options, Clock& clock, const JobExecutors& executors,
         std::unique_ptr<Peers> peers)
    : options_(std::move(options)),
      clock_(clock),
      unix_clock_(executors.unix_clock),
      tokens_(options_.name, options_.server == ServerId{0} ? options_.token_key : ""),
      streams_(
          options_.rule.max_workers,
          [this] {
            // Shards without values ask another worker.
            if (const auto model = model_.Get()) model->AskForValues();
          },
          options_.member_count),
      model_(options_.server, options_.server_count, ShardOptionsOf(options_), memory_plan(),
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
                    if (protocols_.shard_sums != nullptr)
                      protocols_.shard_sums->Applied(shard, effects);
                    if (protocols_.relay != nullptr) protocols_.relay->Applied(shard, effects);
                  },
              .observer = options_.observer},
             options_.groups, SharedTensorSettingsOf(options_)),
      scope_{.self = options_.server,
             .epoch = options_.epoch,
             .generation = options_.generation,
             .publishes = options_.publish.has_value(),
             .streams = streams_,
             .counters = counters_,
             .journal = journal_,
             .frames = frames_,
             .model = model_,
             .clock = clock_,
             .heard =
                 [this](const Sender& sender) { control_.Post([=, this] { RenewLease(sender); }); },
             // Far below the third of a lease after which a heartbeat renews it.
             .heard_interval = options_.lease / 100},
      state_(FirstState(options_)),
      last_wait_notices_(clock.Now()),
      // A shorter pause expires no lease, because a worker sends about three heartbeats per lease.
      control_(executors.threads.Make(), clock, /*limit=*/options_.lease / 2,
               [this](absl::Duration pause) { protocols_.members->ExcusePause(pause); }),
      stored_({state_, model_, journal_, executors.threads}),
      checkpoints_({.durable = options_.durable,
                    .fold = options_.rule.fold,
                    .server_count = options_.server_count,
                    .tracer = options_.tracer},
                   {state_.identity, state_.stopping, state_.membership, model_, stored_, journal_,
                    clock, peers.get(), executors.background},
                   control_),
      protocols_(MakeProtocols({options_, state_, stored_, checkpoints_, model_, counters_, tokens_,
                                peers.get(), clock, control_},
                               [this](const JoinCall& call, Incarnation incarnation) {
                                 admission_.Admit(call, incarnation);
                               })),
      admission_({options_, state_, stored_, checkpoints_, model_, counters_, tokens_, streams_,
                  protocols_, clock, control_}),
      peers_(std::move(peers)) {}

Job::~Job() {
  control_.Stop();
  checkpoints_.Finish();
  journal_.Stop();
  if (const auto model = model_.Get()) model->Finish();
}

absl::Status Job::Recover() {
  if (!options_.durable.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(stored_.Recover(*options_.durable, checkpoints_.aligned(), clock_.Now()));
  state_.recovered = stored_.run().has_value();
  checkpoints_.Start(state_.recovered);
  if (state_.recovered) {
    state_.identity.run = stored_.run()->run;
    tokens_.set_key(stored_.run()->token_key);
    counters_.SetShardCount(model_.Get()->hosts().size());
    counters_.Update([](StatusReply& counts) { counts.set_recovered(true); });
  }
  for (const auto& protocol : protocols_.all) RETURN_IF_ERROR(protocol->Begin());
  if (checkpoints_.awaits_rollback()) {
    LOG(INFO) << checkpoints_.CheckAgreed().message();
  } else if (state_.recovered) {
    // Without a log, a shard may have been saved before a Join or a Leave that the members contain.
    protocols_.start->ContinueMembers(/*in_shards=*/journal_.logs());
  }
  return absl::OkStatus();
}

ServerCondition Job::Condition() const {
  return {.state = state_,
          .agreed = checkpoints_.CheckAgreed(),
          .has_model = model_.has_model(),
          .sums = protocols_.shard_sums != nullptr};
}

void Job::Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done,
               std::function<absl::Status()> may_rejoin) {
  control_.Post([this, call = JoinCall{.request = std::move(request),
                                       .abandoned = std::move(abandoned),
                                       .done = std::move(done),
                                       .may_rejoin = std::move(may_rejoin)}] {
    admission_.Join(Condition(), call);
  });
}

void Job::RenewLease(const Sender& sender) {
  protocols_.members->Renew(sender.worker, sender.incarnation, sender.member);
  AnswerJoins();
}

void Job::AnswerJoins() {
  if (protocols_.joins != nullptr) protocols_.joins->Answer();
}

void Job::Handle(const HeartbeatRequest& request, const Done<HeartbeatReply>& done) {
  // A heartbeat with another epoch renews no lease: its sender joined an earlier process of this
  // server, but not this process.
  if (request.epoch() == state_.identity.epoch.value) {
    RenewLease({.worker = WorkerId{request.worker()},
                .incarnation = Incarnation{request.incarnation()},
                .member = request.member()});
    checkpoints_.Heard(request);
    for (const auto& protocol : protocols_.all) protocol->Heard(request);
  }
  HeartbeatReply reply;
  reply.set_generation(state_.identity.generation.value);
  reply.set_epoch(state_.identity.epoch.value);
  reply.set_unix_micros(
      absl::ToUnixMicros(options_.tracer == nullptr ? unix_clock_.Now() : options_.tracer->Now()));
  checkpoints_.FillIn(request, reply);
  for (const auto& protocol : protocols_.all) protocol->FillIn(request, reply);
  done(reply);
}

void Job::Handle(const LeaveRequest& request, const Done<LeaveReply>& done) {
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  const absl::Status left =
      state_.membership.Leave(worker, incarnation, DepartureOf(request), request.member());
  if (!left.ok()) return done(left);
  if (!state_.membership.of(worker).left) return done(LeaveReply());  // other members go on
  protocols_.members->LogLeave(worker);
  const bool waits = protocols_.shard_sums != nullptr && state_.membership.Live().empty();
  stored_.RecordMember(worker, [this, event = LeaveEvent{worker, incarnation}, waits, done] {
    model_.ApplyToAll(event, [this, waits, done] {
      if (!waits) return done(LeaveReply());
      control_.Post([this, done] {
        protocols_.shard_sums->WhenClosed(clock_.Now(), [done] { done(LeaveReply()); });
      });
    });
  });
  if (protocols_.deals != nullptr) protocols_.deals->Update();
  AnswerJoins();
}

void Job::Handle(const SetModeRequest& request, const Done<SetModeReply>& done) {
  if (protocols_.rules == nullptr) return protocols_.rule_follower->SetMode(request, done);
  protocols_.rules->SetMode(request, [this, done](const absl::StatusOr<SetModeReply>& reply) {
    if (reply.ok() && protocols_.waits != nullptr) protocols_.waits->End();
    done(reply);
  });
}

void Job::Handle(const DrainRequest& request, const Done<DrainReply>& done) {
  if (request.has_worker()) {
    return protocols_.member_lead->Drain(WorkerId{request.worker()}, done);
  }
  LOG(INFO) << "an operator drains this server";
  done(DrainReply());
  options_.drained();
}

void Job::Handle(const SaveCheckpointRequest& request, const Done<SaveCheckpointReply>& done) {
  SaveCheckpointRequest of_job = request;
  if (of_job.job().empty()) of_job.set_job(state_.identity.job);
  checkpoints_.Save(of_job, !state_.membership.Live().empty(), done);
}

void Job::Handle(const StatusRequest& /*request*/, const Done<StatusReply>& done) {
  StatusReply reply;
  reply.set_insecure(options_.insecure);
  reply.set_page(options_.page);
  for (const auto& protocol : protocols_.all) protocol->FillIn(reply);
  checkpoints_.FillIn(reply);
  GatherStatus({state_, model_, counters_, frames_, journal_, clock_}, control_, std::move(reply),
               done);
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

void Job::HandleTick() {
  const absl::Time now = clock_.Now();
  if (!state_.stopping) checkpoints_.Tick(now);
  HastenTick();
  if (!checkpoints_.CheckAgreed().ok()) return protocols_.members->Suspend(now);
  for (const auto& protocol : protocols_.all) protocol->Tick(now);
  if (!model_.has_model() || now - last_wait_notices_ < kWaitNoticeInterval) return;
  last_wait_notices_ = now;
  model_.Get()->SendWaitNotices();
}

void Job::HastenTick() {
  if (hastens_tick_ || state_.stopping || !checkpoints_.delays_workers()) return;
  hastens_tick_ = true;
  control_.PostAt(control_.Now() + kHastenedTick, [this] {
    hastens_tick_ = false;
    HandleTick();
  });
}

void Job::Stop(std::function<void()> done) {
  control_.Post([this, done = std::move(done)] { HandleStop(done); });
}

void Job::HandleStop(std::function<void()> done) {
  state_.stopping = true;
  for (const auto& protocol : std::views::reverse(protocols_.all)) protocol->Stop(Stopping());
  checkpoints_.Stop(Stopping());
  const auto end = [this, done = std::move(done)](const std::vector<int>&) {
    for (const auto& stream : streams_.All()) stream->EndAfterFlush(Stopping());
    done();
  };
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return end({});
  journal_.Flush();  // posts the events of all records to the strands
  // A server that is started again begins the present trial again.
  const bool fits = protocols_.precision == nullptr || protocols_.precision->MaySave();
  if (fits) checkpoints_.SaveLast();
  // The end is posted to the control thread, behind the last part of the checkpoint there.
  model->ForAllShards<int>(
      [](ShardHost&, Shard&) { return 0; },
      [this, end](const std::vector<int>& all) { control_.Post([=] { end(all); }); });
}

}  // namespace thinwire
