// ShardSums makes the full rounds of this server wait until sums of squares are known over shards of
// all servers:
//
//   a job with clip_norm      the norm of the averaged gradient, over all shards of the model, by
//                             which the gradient is limited (Pascanu et al. 2013, arXiv 1211.5063)
//   otherwise                 the norms of each tensor that shards share (Partition::SharesTensor),
//                             from which the optimizer computes the tensor's trust ratio
//
//   shard: full round -> sums over the server's shards -> reply to the lead's Sum call
//   lead: sums over the servers -> the next Sum call -> SumEvent at every shard of the server
//
// SumLead and SumFollower are the two kinds of ShardSums. A server without such shards is not called.
// Generations keep the rounds before and after a rollback apart, because each Job has a ShardSums of
// its own.
//
// Lives on the job's control thread, except for Applied.
#ifndef THINWIRE_SERVER_PROTOCOLS_SUMS_SHARD_SUMS_H_
#define THINWIRE_SERVER_PROTOCOLS_SUMS_SHARD_SUMS_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_identity.h"
#include "server/protocols/sums/round_sum.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class ShardSums : public Protocol {
 public:
  // How long WhenClosed waits, from its first call on. A lost server may never report its part.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // CLIP_NORM is the setting of the job, or 0. The other arguments must outlive this object.
  ShardSums(double clip_norm, const JobIdentity& identity, ServerShards& shards, Executor& control)
      : clip_norm_(clip_norm), identity_(identity), shards_(shards), control_(control) {}

  // An event at SHARD had EFFECTS. Called on the strand of the shard. Thread-safe.
  void Applied(ShardId shard, const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls THEN as soon as no full round waits on this server, or after kPatience. Call when the
  // shards have applied the departure of the last worker.
  void WhenClosed(absl::Time now, std::function<void()> then);
  void Tick(absl::Time now) override;
  // Ends all waits.
  void Stop(const absl::Status& status) override;

 protected:
  // The shards of this server have finished the rounds up to that of PART.
  virtual void Finished(const RoundPart& part) = 0;
  // Closes the round of SUM at the shards of this server.
  void Close(const RoundPart& sum);

  // Returns the shards of SERVER that wait for sums. REQUIRES: the model exists.
  std::vector<ShardId> MembersOf(ServerId server) const;
  double clip_norm() const { return clip_norm_; }
  const JobIdentity& identity() const { return identity_; }
  const ServerShards& shards() const { return shards_; }
  Executor& control() { return control_; }
  // Returns the newest part of this server, and its full round that waits.
  const std::optional<RoundPart>& part() const { return part_; }
  std::optional<Step> waiting() const { return waiting_; }
  bool stopped() const { return stopped_; }

 private:
  bool IsMember(ShardId shard) const;
  uint32_t NumberOf(ShardId shard) const;
  // Returns the newest round that SHARD has finished in an event with EFFECTS, or nullopt if there
  // is none.
  std::optional<RoundPart> PartOf(ShardId shard, const Effects& effects) const;
  // FULL: some shards wait in the round of PART.
  void Report(const RoundPart& part, bool full);
  void EndCloses(absl::Time now);

  const double clip_norm_;
  const JobIdentity& identity_;
  ServerShards& shards_;
  Executor& control_;

  absl::Mutex mu_;
  std::optional<RoundSum> sums_ ABSL_GUARDED_BY(mu_);     // set by the first full round
  std::optional<Step> newest_full_ ABSL_GUARDED_BY(mu_);  // of a shard of this server

  std::optional<RoundPart> part_;
  std::optional<Step> waiting_;
  std::vector<std::function<void()>> closes_;  // of WhenClosed
  std::optional<absl::Time> give_up_at_;       // WhenClosed no longer waits for the round
  bool stopped_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_SUMS_SHARD_SUMS_H_
