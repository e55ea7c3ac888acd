// Counters counts the events of this server since its start, in the fields of a StatusReply.
//
// A new counter needs a field in StatusReply (proto/control.proto) and an Update() call at the
// place of the event.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_EDGE_COUNTERS_H_
#define THINWIRE_SERVER_EDGE_COUNTERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"

namespace thinwire {

// Staleness from this value on is counted as this value. Peers send the numbers that staleness is
// computed from, and must not determine how many counts there are.
inline constexpr uint64_t kMaxStaleness = 1024;

class Counters {
 public:
  // Sets the number of shards that close each round. Call it before the first round closes.
  void SetShardCount(size_t shard_count) ABSL_LOCKS_EXCLUDED(mu_);

  // Counts the judgement and the rounds of one shard's effects.
  void Count(const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls update(counts), which changes the counts of a StatusReply.
  template <typename F>
  void Update(const F& update) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    update(counts_);
  }

  // Sets the counts of REPLY.
  void FillIn(StatusReply& reply) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A step that some shards have closed and others have not.
  struct PartlyClosedStep {
    std::vector<WorkerId> accepted;
    size_t shard_count = 0;
    bool split = false;
  };

  void CountJudgement(const Judgement& judgement) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountRound(const ClosedRound& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  size_t shard_count_ ABSL_GUARDED_BY(mu_) = 0;
  StatusReply counts_ ABSL_GUARDED_BY(mu_);  // counts only; other fields stay unset
  std::map<Step, PartlyClosedStep> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_COUNTERS_H_
