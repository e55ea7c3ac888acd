#include "client/exchange/job_news.h"

#include <set>

namespace thinwire::client {

void JobNews::Add(ServerId server, const HeartbeatReply& reply) {
  absl::MutexLock lock(&mu_);
  std::vector<WorkerId>& live = live_[server];
  live.clear();
  for (const uint32_t worker : reply.live()) live.push_back(WorkerId{worker});
  if (server == ServerId{0}) ++lead_reply_count_;
  if (reply.has_checkpoint_step()) checkpoint_step_ = Step{reply.checkpoint_step()};
  if (reply.has_stop_step()) stop_step_ = Step{reply.stop_step()};
  if (reply.has_evaluator()) evaluator_ = WorkerId{reply.evaluator()};
}

void JobNews::EndWaits() {
  absl::MutexLock lock(&mu_);
  waits_end_ = true;
}

void JobNews::Resume() {
  absl::MutexLock lock(&mu_);
  waits_end_ = false;
  checkpoint_step_.reset();
}

bool JobNews::Await(absl::FunctionRef<bool()> ready, absl::Duration timeout) const {
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return waits_end_ || ready(); };
  mu_.AwaitWithTimeout(absl::Condition(&ended), timeout);
  return ready();
}

std::vector<WorkerId> JobNews::live() const {
  absl::MutexLock lock(&mu_);
  const auto lead = live_.find(ServerId{0});
  return lead == live_.end() ? std::vector<WorkerId>() : lead->second;
}

std::vector<WorkerId> JobNews::LiveExcept(WorkerId worker) const {
  absl::MutexLock lock(&mu_);
  return LiveExceptLocked(worker);
}

std::optional<Step> JobNews::checkpoint_step() const {
  absl::MutexLock lock(&mu_);
  return checkpoint_step_;
}

uint64_t JobNews::lead_reply_count() const {
  absl::MutexLock lock(&mu_);
  return lead_reply_count_;
}

bool JobNews::WaitForLeadReplies(uint64_t count, absl::Duration timeout) const {
  const auto replied = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return lead_reply_count_ >= count; };
  absl::MutexLock lock(&mu_);
  return Await(replied, timeout);
}

bool JobNews::WaitUntilAlone(WorkerId worker, uint32_t server_count, absl::Duration timeout) const {
  const auto alone = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return live_.size() == server_count && LiveExceptLocked(worker).empty();
  };
  absl::MutexLock lock(&mu_);
  return Await(alone, timeout);
}

std::optional<WorkerId> JobNews::WaitForEvaluator(absl::Duration timeout) const {
  const auto known = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return evaluator_.has_value(); };
  absl::MutexLock lock(&mu_);
  Await(known, timeout);
  return evaluator_;
}

std::optional<Step> JobNews::WaitForStopStep(absl::Duration timeout) const {
  const auto known = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return stop_step_.has_value(); };
  absl::MutexLock lock(&mu_);
  Await(known, timeout);
  return stop_step_;
}

std::vector<WorkerId> JobNews::LiveExceptLocked(WorkerId worker) const {
  std::set<WorkerId> others;
  for (const auto& [server, live] : live_) others.insert(live.begin(), live.end());
  others.erase(worker);
  return {others.begin(), others.end()};
}

}  // namespace thinwire::client
