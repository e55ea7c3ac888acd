#include "server/edge/job_control.h"

#include <glog/logging.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/core/shard.h"
#include "server/edge/convert.h"
#include "server/edge/status_report.h"

namespace thinwire {
namespace {

constexpr absl::Duration kTellWaitsEvery = absl::Seconds(2);

uint32_t ThreadCount(uint32_t wanted) {
  return wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

absl::Status CheckWorker(uint32_t worker, const Rule& rule) {
  if (worker < rule.workers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("worker ", worker, ": the job has ", rule.workers,
                                                 " workers, want a number below that"));
}

ShardOptions ShardOptionsOf(const JobOptions& options) {
  return {.rule = options.rule,
          .generation = options.generation,
          .sparse_updates = options.sparse_updates,
          .publish = options.publish,
          .memory = options.memory};
}

absl::Status Stopping() { return absl::UnavailableError("this server is stopping"); }

}  // namespace

JobControl::JobControl(JobOptions options, std::unique_ptr<const Optimizer> optimizer,
                       Schedule schedule, Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      streams_(options_.rule.workers),
      scope_{.self = options_.server,
             .epoch = options_.epoch,
             .generation = options_.generation,
             .publishes = options_.publish.has_value(),
             .streams = streams_,
             .counters = counters_,
             .delivery = delivery_,
             .model = [this] { return model(); },
             .heard =
                 [this](WorkerId worker, Incarnation incarnation) {
                   Post([=, this] { Hear(worker, incarnation); });
                 }},
      shards_pool_(ThreadCount(options_.thread_count)),
      model_(options_.server, options_.server_count, ShardOptionsOf(options_), std::move(optimizer),
             std::move(schedule), shards_pool_),
      membership_(options_.rule.workers, options_.lease),
      waits_told_(clock.Now()) {}

JobControl::~JobControl() {
  control_.stop();
  control_.join();
  // What was posted to the shards is applied.
  shards_pool_.join();
}

void JobControl::Join(JoinCall call) {
  absl::Status status = Admissible(call.request);
  if (!status.ok()) return call.done(status);
  const Incarnation incarnation{call.request.incarnation()};
  call.asked = clock_.Now();
  if (incarnation.value == 0) {
    if (!Answered(call)) waiting_joins_.push_back(std::move(call));
    return;
  }
  status = membership_.Adopt(call.worker(), incarnation, clock_.Now());
  if (!status.ok()) return call.done(status);
  Admit(call, incarnation);
}

absl::Status JobControl::Admissible(const JoinRequest& request) {
  if (stopping_) return Stopping();
  if (request.job() != options_.name) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job: this server's is \"", options_.name, "\", the worker's is \"", request.job(), "\""));
  }
  absl::Status status = CheckWorker(request.worker(), options_.rule);
  if (!status.ok()) return status;
  if (request.incarnation() == 0 && options_.server.value != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "incarnation 0: only server 0 gives one, this is server ", options_.server.value));
  }
  status = model_.Take(request);
  if (!status.ok()) return status;
  counters_.SetShardCount(model()->hosts().size());
  if (!first_join_.has_value()) first_join_ = clock_.Now();
  return absl::OkStatus();
}

bool JobControl::Answered(const JoinCall& call) {
  if (call.abandoned()) {
    call.done(absl::CancelledError("the caller stopped waiting"));
    return true;
  }
  const auto given = membership_.Ask(call.worker(), call.asked, clock_.Now());
  if (!given.ok()) {
    call.done(given.status());
  } else if (given->has_value()) {
    Admit(call, **given);
  } else {
    return false;
  }
  return true;
}

void JobControl::AnswerWaitingJoins() {
  std::erase_if(waiting_joins_, [this](const JoinCall& call) { return Answered(call); });
}

void JobControl::Admit(const JoinCall& call, Incarnation incarnation) {
  LOG(INFO) << "worker " << call.worker() << " joined as incarnation " << incarnation << ", "
            << membership_.Live().size() << " of " << options_.rule.workers << " are here";
  const JoinEvent event{call.worker(), incarnation};
  model()->AskAll<JoinAnswer>(
      [this, event](ShardHost& host, Shard& shard) {
        return *delivery_.Apply(host, shard, event, nullptr).join;
      },
      [this, incarnation, done = call.done](const std::vector<JoinAnswer>& answers) {
        // By way of this thread, which first lets the process's frames in.
        Post([done, reply = ReplyOf(incarnation, answers)] { done(reply); });
      });
  streams_.Know(call.worker(), incarnation);
}

JoinReply JobControl::ReplyOf(Incarnation incarnation,
                              const std::vector<JoinAnswer>& answers) const {
  JoinReply reply;
  reply.set_incarnation(incarnation.value);
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  reply.set_by_round(options_.rule.fold == Fold::kRound);
  reply.set_lease_seconds(absl::ToDoubleSeconds(options_.lease));
  reply.set_workers(options_.rule.workers);
  const auto& hosts = model()->hosts();
  for (size_t i = 0; i < answers.size(); ++i) {
    *reply.add_shards() = ShardStateOf(hosts[i]->id(), answers[i]);
  }
  return reply;
}

void JobControl::Hear(WorkerId worker, Incarnation incarnation) {
  if (membership_.Heard(worker, incarnation, clock_.Now()) == Sign::kReturned) {
    LOG(INFO) << "worker " << worker << " is heard again";
    ApplyToAll(ReturnEvent{worker, incarnation}, [] {});
  }
  AnswerWaitingJoins();
}

void JobControl::ApplyToAll(const Event& event, std::function<void()> then) {
  const std::shared_ptr<const HostedModel> known = model();
  if (known == nullptr) return then();
  known->AskAll<int>(
      [this, event](ShardHost& host, Shard& shard) {
        delivery_.Apply(host, shard, event, nullptr);
        return 0;
      },
      [then = std::move(then)](const std::vector<int>&) { then(); });
}

void JobControl::Heartbeat(const HeartbeatRequest& request, const Job::Done<HeartbeatReply>& done) {
  absl::Status status = CheckWorker(request.worker(), options_.rule);
  if (!status.ok()) return done(status);
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  // A heartbeat for another start of this server holds no lease here: its sender has to join first.
  if (request.epoch() == options_.epoch.value) Hear(worker, incarnation);
  HeartbeatReply reply;
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  reply.set_fenced(incarnation < membership_.of(worker).incarnation);
  for (WorkerId live : membership_.Live()) reply.add_live(live.value);
  done(reply);
}

void JobControl::Leave(const LeaveRequest& request, Job::Done<LeaveReply> done) {
  absl::Status status = CheckWorker(request.worker(), options_.rule);
  const WorkerId worker{request.worker()};
  const Incarnation incarnation{request.incarnation()};
  if (status.ok()) status = membership_.Leave(worker, incarnation);
  if (!status.ok()) return done(status);
  LOG(INFO) << "worker " << worker << " left, " << membership_.Live().size() << " are here";
  ApplyToAll(LeaveEvent{worker, incarnation}, [done = std::move(done)] { done(LeaveReply()); });
  AnswerWaitingJoins();
}

void JobControl::Status(Job::Done<StatusReply> done) {
  StatusReply reply;
  reply.set_job(options_.name);
  reply.set_server(options_.server.value);
  reply.set_generation(options_.generation.value);
  reply.set_epoch(options_.epoch.value);
  counters_.FillIn(reply);
  const std::shared_ptr<const HostedModel> known = model();
  reply.set_sealed(known != nullptr);
  if (known == nullptr) return done(std::move(reply));
  const uint32_t worker_count = options_.rule.workers;
  known->AskAll<ShardReport>(
      [worker_count](const ShardHost& host, const Shard& shard) {
        return ReportOf(host.id(), host.value_count(), shard, worker_count);
      },
      [this, worker_count, reply, done](std::vector<ShardReport> reports) {
        Post([this, worker_count, reply, done, reports = std::move(reports)]() mutable {
          FillIn(reports, membership_, worker_count, clock_.Now(), reply);
          done(std::move(reply));
        });
      });
}

void JobControl::Tick() {
  const absl::Time now = clock_.Now();
  for (const auto& [worker, incarnation] : membership_.Expire(now)) {
    LOG(WARNING) << "worker " << worker << " was silent for " << options_.lease
                 << ": the others no longer wait for it";
    counters_.CountExpiry();
    ApplyToAll(ExpireEvent{worker, incarnation}, [] {});
  }
  AnswerWaitingJoins();
  OpenAfterTimeout(now);
  TellWaits(now);
}

void JobControl::TellWaits(absl::Time now) {
  const std::shared_ptr<const HostedModel> known = model();
  if (known == nullptr || now - waits_told_ < kTellWaitsEvery) return;
  waits_told_ = now;
  for (const auto& host : known->hosts()) {
    host->Post([this, &host = *host](Shard& shard) { delivery_.TellWaits(host, shard); });
  }
}

void JobControl::OpenAfterTimeout(absl::Time now) {
  if (timeout_over_ || !first_join_.has_value()) return;
  if (now - *first_join_ < options_.start_timeout) return;
  timeout_over_ = true;
  const size_t present = membership_.Live().size();
  const auto open = [this](ShardHost& host, Shard& shard) {
    const int was_shut = shard.open() ? 0 : 1;
    if (was_shut != 0) delivery_.Apply(host, shard, OpenEvent{}, nullptr);
    return was_shut;
  };
  model()->AskAll<int>(open, [this, present](const std::vector<int>& was_shut) {
    if (std::find(was_shut.begin(), was_shut.end(), 1) == was_shut.end()) return;
    LOG(WARNING) << "start_timeout of " << options_.start_timeout
                 << " is over: training begins with the " << present << " of "
                 << options_.rule.workers << " workers that are here";
  });
}

void JobControl::TickEvery(std::chrono::nanoseconds every) {
  ticker_.expires_after(every);
  ticker_.async_wait([this, every](const boost::system::error_code& error) {
    if (error) return;
    Tick();
    TickEvery(every);
  });
}

void JobControl::Stop(std::function<void()> done) {
  stopping_ = true;
  for (const JoinCall& call : waiting_joins_) call.done(Stopping());
  waiting_joins_.clear();
  const auto end = [this, done = std::move(done)](const std::vector<int>&) {
    for (const auto& stream : streams_.All()) stream->EndWhenSaid(Stopping());
    done();
  };
  const std::shared_ptr<const HostedModel> known = model();
  if (known == nullptr) return end({});
  known->AskAll<int>([](ShardHost&, Shard&) { return 0; }, end);
}

}  // namespace thinwire
