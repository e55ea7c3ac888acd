// A Clipper limits the L2 norm of the averaged gradient of each round to clip_norm (Pascanu et al.
// 2013, arXiv 1211.5063). The norm is that over all shards of the model:
//
//   shard: full round -> sum over the server's shards -> reply to the lead's Clip call
//   lead: sum over the servers -> the next Clip call -> ClipEvent at every shard of the server
//
// ClipLead and ClipFollower are the two kinds of Clippers. A server without shards is not called.
// Generations keep the rounds before and after a rollback apart, because each Job has a Clipper of
// its own.
//
// Lives on the job's control thread, except for Applied.
#ifndef THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_
#define THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_

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
#include "server/protocols/clipping/round_sum.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_identity.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class Clipper : public Protocol {
 public:
  // How long WhenClosed waits, from its first call on. A lost server may never report its part.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // LIMIT is the largest norm. The other arguments must outlive this object. REQUIRES: LIMIT is
  // above 0.
  Clipper(double limit, const JobIdentity& identity, ServerShards& shards, Executor& control)
      : limit_(limit), identity_(identity), shards_(shards), control_(control) {}

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
  virtual void Finished(const FullRound& part) = 0;
  // Clips the round of SUM at the shards of this server.
  void Close(const FullRound& sum);

  double limit() const { return limit_; }
  const JobIdentity& identity() const { return identity_; }
  const ServerShards& shards() const { return shards_; }
  Executor& control() { return control_; }
  // Returns the newest part of this server, and its full round that waits.
  const std::optional<FullRound>& part() const { return part_; }
  std::optional<Step> waiting() const { return waiting_; }
  bool stopped() const { return stopped_; }

 private:
  // FULL: some shards wait in the round of PART.
  void Report(const FullRound& part, bool full);
  void EndCloses(absl::Time now);

  const double limit_;
  const JobIdentity& identity_;
  ServerShards& shards_;
  Executor& control_;

  absl::Mutex mu_;
  std::optional<RoundSum> sums_ ABSL_GUARDED_BY(mu_);     // set by the first full round
  std::optional<Step> newest_full_ ABSL_GUARDED_BY(mu_);  // of a shard of this server

  std::optional<FullRound> part_;
  std::optional<Step> waiting_;
  std::vector<std::function<void()>> closes_;  // of WhenClosed
  std::optional<absl::Time> give_up_at_;       // WhenClosed no longer waits for the round
  bool stopped_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_
