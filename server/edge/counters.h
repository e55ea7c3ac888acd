// Counters: what has happened on this server since it started, as StatusReply tells it.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_COUNTERS_H_
#define THINWIRE_SERVER_EDGE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"

namespace thinwire {

// Staleness is counted one by one below this and together from here on: it is computed from numbers
// of peers, who must not choose how many counts there are.
inline constexpr uint64_t kMostStaleness = 1024;

class Counters {
 public:
  // How many shards a round is to close on. Before the first one does.
  void SetShardCount(size_t shard_count) ABSL_LOCKS_EXCLUDED(mu_);

  // The judgement and the rounds of one shard's effects.
  void Count(const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);
  void CountExpiry() ABSL_LOCKS_EXCLUDED(mu_);
  void CountPushPayload(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void CountParametersPayload(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // Sets the counts of REPLY.
  void FillIn(StatusReply& reply) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A step that has closed on some shards and not on all.
  struct OpenStep {
    std::vector<WorkerId> accepted;
    size_t shard_count = 0;
    bool split = false;
  };

  void CountJudgement(const Judgement& judgement) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountRound(const RoundClosed& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  size_t shard_count_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t verdicts_[8] ABSL_GUARDED_BY(mu_) = {};
  uint64_t repeated_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t expirations_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t push_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t parameters_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t split_steps_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, uint64_t> staleness_ ABSL_GUARDED_BY(mu_);
  std::map<Step, OpenStep> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_COUNTERS_H_
