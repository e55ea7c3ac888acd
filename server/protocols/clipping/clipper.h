// Clipper limits the L2 norm of the averaged gradient of each round to clip_norm (Pascanu et al.
// 2013, arXiv 1211.5063). The norm is that over all shards of the model:
//
//   shard: full round -> sum over the server's shards -> reply to the lead's Clip call
//   lead: sum over the servers -> the next Clip call -> ClipEvent at every shard of the server
//
// The lead calls Clip at every other server once per round: the request has the sum of the last
// round, and the reply, which waits for the shards, the server's part of the next one. A call that
// fails is made again. Generations keep the rounds before and after a rollback apart, because each
// Job has a Clipper of its own. A server that has no shard is not called.
//
// Lives on the job's control thread, except for Applied.
#ifndef THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_
#define THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_

#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/protocols/clipping/round_sum.h"
#include "server/protocols/job_identity.h"
#include "server/protocols/peers.h"
#include "server/shards/counters.h"

namespace thinwire {

class Clipper {
 public:
  // How long WhenClosed waits, from its first call on. A lost server may never report its part.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // The parts of the job that are used. They must outlive this object. PEERS may be null except at
  // the lead of several servers.
  struct Parts {
    const JobIdentity& identity;
    Counters& counters;
    Peers* peers;
    // Returns the division of the model among the servers. Thread-safe. REQUIRES: the model exists.
    std::function<const Partition&()> partition;
    // Submits an event to the shards of this server, then calls THEN on any thread when all of them
    // have applied it.
    std::function<void(const ClipEvent& event, std::function<void()> then)> apply;
  };

  // LIMIT is the largest norm. CONTROL, the control thread, must outlive this object. REQUIRES:
  // LIMIT is above 0.
  Clipper(double limit, Parts parts, Executor& control)
      : limit_(limit), parts_(std::move(parts)), control_(control) {}

  // An event at SHARD had EFFECTS. Called on the strand of the shard. Thread-safe.
  void Applied(ShardId shard, const Effects& effects) ABSL_LOCKS_EXCLUDED(mu_);

  // At the lead: calls each server that has no call and has not replied since the last sum.
  // REQUIRES: the model exists.
  void CallServers();
  // Performs the lead's call at another server (Job::Clip).
  void Clip(const ClipRequest& request, std::function<void(absl::StatusOr<ClipReply>)> done);
  // Calls THEN as soon as no full round waits on this server, or after kPatience. Call when the
  // shards have applied the departure of the last worker.
  void WhenClosed(absl::Time now, std::function<void()> then);
  void Tick(absl::Time now);
  // Ends all waits with STATUS.
  void Stop(const absl::Status& status);

 private:
  struct HeldReply {
    std::optional<Step> after;
    std::function<void(absl::StatusOr<ClipReply>)> done;
  };

  // The shards of this server have finished the rounds up to that of PART. FULL: some of them wait.
  void Report(const FullRound& part, bool full);
  void ReplyIfDue();
  // At the lead: adds the part of SERVER.
  void Add(ServerId server, const FullRound& part);
  void OnReply(ServerId server, const absl::StatusOr<ClipReply>& reply);
  // Clips the round of SUM at the shards of this server.
  void Close(const FullRound& sum);
  void EndCloses(absl::Time now);

  const double limit_;
  const Parts parts_;
  Executor& control_;

  absl::Mutex mu_;
  std::optional<RoundSum> shards_ ABSL_GUARDED_BY(mu_);   // set by the first full round
  std::optional<Step> newest_full_ ABSL_GUARDED_BY(mu_);  // of a shard of this server

  std::optional<FullRound> part_;              // the newest part of this server
  std::optional<Step> waiting_;                // the full round of this server that waits
  std::optional<HeldReply> reply_;             // at another server than the lead: the lead's call
  std::vector<std::function<void()>> closes_;  // of WhenClosed
  std::optional<absl::Time> give_up_at_;       // WhenClosed no longer waits for the round
  bool stopped_ = false;
  // At the lead.
  std::optional<RoundSum> servers_;  // set by the first call
  std::vector<ServerId> others_;     // the other servers with a shard
  std::set<ServerId> called_;        // servers with a call, or with a reply since the last sum
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIPPER_H_
