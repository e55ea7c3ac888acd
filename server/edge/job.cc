#include "server/edge/job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/edge/hosted_model.h"
#include "server/edge/job_control.h"
#include "server/edge/masters.h"

namespace thinwire {

Job::Job(JobOptions options, std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
         Clock& clock)
    : control_(std::make_unique<JobControl>(std::move(options), std::move(optimizer),
                                            std::move(schedule), clock)) {}

Job::~Job() = default;

void Job::Join(JoinRequest request, std::function<bool()> abandoned, Done<JoinReply> done) {
  control_->Post([control = control_.get(),
                  call = JoinCall{std::move(request), std::move(abandoned), std::move(done),
                                  absl::Time()}] { control->Join(call); });
}

void Job::Heartbeat(const HeartbeatRequest& request, Done<HeartbeatReply> done) {
  control_->Post([control = control_.get(), request, done] { control->Heartbeat(request, done); });
}

void Job::Leave(const LeaveRequest& request, Done<LeaveReply> done) {
  control_->Post([control = control_.get(), request, done] { control->Leave(request, done); });
}

void Job::Status(Done<StatusReply> done) {
  control_->Post([control = control_.get(), done] { control->Status(done); });
}

void Job::Masters(size_t place, Done<std::vector<MastersChunk>> done) {
  const std::shared_ptr<const HostedModel> model = control_->model();
  if (model == nullptr) return done(absl::FailedPreconditionError("no worker has joined yet"));
  if (place >= model->hosts().size()) return done(std::vector<MastersChunk>());
  ShardHost& host = *model->hosts()[place];
  host.Post([&host, model, done = std::move(done)](Shard& shard) {
    if (shard.seeded()) return done(ChunksOf(model->partition(), host.id(), shard.masters()));
    done(absl::FailedPreconditionError(
        absl::StrCat("shard ", host.id().value, " has no values yet")));
  });
}

std::unique_ptr<Session> Job::Open(StreamLink link) {
  return std::make_unique<Session>(control_->scope(), std::move(link));
}

void Job::Tick(std::function<void()> done) {
  control_->Post([control = control_.get(), done = std::move(done)] {
    control->Tick();
    done();
  });
}

void Job::StartTicking(absl::Duration every) {
  control_->Post([control = control_.get(), every = absl::ToChronoNanoseconds(every)] {
    control->TickEvery(every);
  });
}

void Job::Stop(std::function<void()> done) {
  control_->Post([control = control_.get(), done = std::move(done)] { control->Stop(done); });
}

}  // namespace thinwire
