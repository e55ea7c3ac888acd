#include "admin/server_history.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace thinwire {
namespace {

// Returns the smallest frontier of the shards; 0 without a shard.
uint64_t StepOf(const StatusReply& reply) {
  uint64_t step = std::numeric_limits<uint64_t>::max();
  for (const ShardStatus& shard : reply.shards()) step = std::min<uint64_t>(step, shard.frontier());
  return reply.shards().empty() ? 0 : step;
}

}  // namespace

void ServerHistory::Add(StatusReply reply, absl::Time now) {
  const bool restarted = latest_ && latest_->epoch() != reply.epoch();
  const uint64_t step = StepOf(reply);
  if (!latest_ || restarted || step != step_) step_since_ = now;
  if (restarted) checkpointed_.reset();
  if (reply.checkpoints() > (latest_ && !restarted ? latest_->checkpoints() : 0)) {
    checkpointed_ = now;
    checkpoint_record_count_ = reply.log_records();
    checkpoint_log_bytes_ = reply.log_bytes();
  }
  curves_.Add(reply, step, now);
  step_ = step;
  answered_ = now;
  failed_since_.reset();
  latest_ = std::move(reply);
}

void ServerHistory::AddFailure(absl::Time now) {
  if (!failed_since_.has_value()) failed_since_ = now;
}

absl::Duration ServerHistory::outage(absl::Time now) const {
  const bool late = latest_.has_value() && now - answered_ > kAnswerLimit;
  if (!failed_since_.has_value() && !late) return absl::ZeroDuration();
  // A failure that has just been noticed is an outage, too.
  return std::max(now - (latest_.has_value() ? answered_ : *failed_since_), absl::Nanoseconds(1));
}

uint64_t ServerHistory::replay_record_count() const {
  if (!latest_) return 0;
  return latest_->log_records() - (checkpointed_ ? checkpoint_record_count_ : 0);
}

uint64_t ServerHistory::replay_bytes() const {
  if (!latest_) return 0;
  return latest_->log_bytes() - (checkpointed_ ? checkpoint_log_bytes_ : 0);
}

}  // namespace thinwire
