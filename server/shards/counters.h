// Counters stores the counters of this server since its start in the fields of a StatusReply.
//
// A new counter requires a field in StatusReply (proto/control.proto) and a call of Update() where
// the counted event happens.
//
// Thread-safe.
#ifndef THINWIRE_SERVER_SHARDS_COUNTERS_H_
#define THINWIRE_SERVER_SHARDS_COUNTERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"

namespace thinwire {

// The largest staleness that has its own counter; pushes with a larger staleness are counted as
// kMaxStaleness. Without this limit, peers could create any number of counters, because staleness
// is computed from the version numbers that peers send.
inline constexpr uint64_t kMaxStaleness = 1024;

class Counters {
 public:
  // Sets the number of shards on this server. For each step, this object stores which workers'
  // pushes each shard accepted, and deletes the record when the step's round has closed at all
  // shards. Must be called before the first round closes.
  void SetShardCount(size_t shard_count) ABSL_LOCKS_EXCLUDED(mu_);

  // Counts the verdict and the staleness in EFFECTS, the effects of one event at one shard. Uses
  // the closed rounds in EFFECTS to count steps for which the shards accepted gradients of
  // different workers.
  void Count(const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls update(counts), which may change any counter in the StatusReply `counts`.
  template <typename F>
  void Update(const F& update) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    update(counts_);
  }

  // Copies all counters to REPLY.
  void FillIn(StatusReply& reply) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A step whose round is closed at some shards and still open at others.
  struct PartlyClosedStep {
    std::vector<WorkerId> accepted;
    size_t shard_count = 0;
    bool split = false;
  };

  void CountJudgement(const Judgement& judgement) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountRound(const ClosedRound& round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  size_t shard_count_ ABSL_GUARDED_BY(mu_) = 0;
  StatusReply counts_ ABSL_GUARDED_BY(mu_);  // contains counters only; other fields are unset
  std::map<Step, PartlyClosedStep> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_COUNTERS_H_
