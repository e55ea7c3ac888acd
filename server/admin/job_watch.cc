#include "server/admin/job_watch.h"

#include <cstddef>
#include <utility>

namespace thinwire {

JobWatch::JobWatch(std::vector<StatusSource> sources, Clock& clock, absl::Duration interval)
    : sources_(std::move(sources)),
      clock_(clock),
      interval_(interval),
      replies_(std::make_shared<Replies>()) {
  {
    absl::MutexLock lock(&replies_->mu);
    for (const StatusSource& source : sources_) replies_->histories.emplace_back(source.server);
    replies_->asked.resize(sources_.size());
  }
  thread_ = std::thread([this] { Run(); });
}

JobWatch::~JobWatch() {
  {
    absl::MutexLock lock(&replies_->mu);
    replies_->stopped = true;
  }
  thread_.join();
}

std::vector<ServerHistory> JobWatch::histories() const {
  absl::MutexLock lock(&replies_->mu);
  return replies_->histories;
}

absl::Duration JobWatch::pending() const {
  absl::MutexLock lock(&replies_->mu);
  const std::optional<absl::Time>& asked = replies_->asked.front();
  return asked ? clock_.Now() - *asked : absl::ZeroDuration();
}

void JobWatch::Run() {
  while (true) {
    for (size_t i = 0; i < sources_.size(); ++i) {
      {
        absl::MutexLock lock(&replies_->mu);
        if (replies_->asked[i]) continue;
        replies_->asked[i] = clock_.Now();
      }
      sources_[i].ask([i, replies = replies_, &clock = clock_](absl::StatusOr<StatusReply> reply) {
        absl::MutexLock lock(&replies->mu);
        if (replies->stopped) return;
        replies->asked[i].reset();
        if (reply.ok()) {
          replies->histories[i].Add(*std::move(reply), clock.Now());
        } else {
          replies->histories[i].AddFailure(clock.Now());
        }
      });
    }
    absl::MutexLock lock(&replies_->mu);
    if (replies_->mu.AwaitWithTimeout(absl::Condition(&replies_->stopped), interval_)) return;
  }
}

}  // namespace thinwire
