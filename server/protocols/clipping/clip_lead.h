// ClipLead adds the parts of the servers, at the lead of a job with clip_norm.
//
// It calls Clip at every other server once per round: the request has the sum of the last round. The
// reply, which waits for the shards, has the server's part of the next one. A call that fails is made
// again.
#ifndef THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_LEAD_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/clipping/clipper.h"
#include "server/protocols/clipping/round_sum.h"
#include "server/protocols/peers.h"
#include "server/protocols/state/job_identity.h"
#include "server/shards/counters.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class ClipLead final : public Clipper {
 public:
  // PEERS may be null in a job with one server. See Clipper for the other arguments.
  ClipLead(double limit, const JobIdentity& identity, ServerShards& shards, Executor& control,
           Peers* peers, Counters& counters)
      : Clipper(limit, identity, shards, control), peers_(peers), counters_(counters) {}

  // Calls each server that has no call and has not replied since the last sum. REQUIRES: the model
  // exists.
  void CallServers();
  void Tick(absl::Time now) override;

 private:
  void Finished(const FullRound& part) override { Add(identity().server, part); }
  // Adds the part of SERVER.
  void Add(ServerId server, const FullRound& part);
  void OnReply(ServerId server, const absl::StatusOr<ClipReply>& reply);

  Peers* const peers_;
  Counters& counters_;
  std::optional<RoundSum> servers_;  // set by the first call
  std::vector<ServerId> others_;     // the other servers with a shard
  std::set<ServerId> called_;        // servers with a call, or with a reply since the last sum
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CLIPPING_CLIP_LEAD_H_
