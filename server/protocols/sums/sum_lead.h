// SumLead adds the parts of the servers, at the lead.
//
// It calls Sum at every other server with shards that wait for sums, once per round: the request has
// the sums of the last round. The reply, which waits for the shards, has the server's part of the
// next ones. A call that fails is made again.
#ifndef THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_LEAD_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/peers.h"
#include "server/protocols/state/job_identity.h"
#include "server/protocols/sums/round_sum.h"
#include "server/protocols/sums/shard_sums.h"
#include "server/shards/counters.h"
#include "server/shards/server_shards.h"

namespace thinwire {

class SumLead final : public ShardSums {
 public:
  // PEERS may be null in a job with one server. See ShardSums for the other arguments.
  SumLead(double clip_norm, const JobIdentity& identity, ServerShards& shards, Executor& control,
          Peers* peers, Counters& counters)
      : ShardSums(clip_norm, identity, shards, control), peers_(peers), counters_(counters) {}

  // Calls each server that has no call and has not replied since the last sum. Does nothing if no
  // shard of the model waits for sums. REQUIRES: the model exists.
  void CallServers();
  void Tick(absl::Time now) override;

 private:
  void Finished(const RoundPart& part) override { Add(identity().server, part); }
  // Adds the part of SERVER.
  void Add(ServerId server, const RoundPart& part);
  // Counts an update with the averaged gradient of SUM.
  void CountClipping(const RoundPart& sum);
  void OnReply(ServerId server, const absl::StatusOr<SumReply>& reply);

  Peers* const peers_;
  Counters& counters_;
  std::optional<RoundSum> servers_;  // set by the first call
  std::vector<ServerId> others_;     // the other servers with shards that wait
  std::set<ServerId> called_;        // servers with a call, or with a reply since the last sum
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_LEAD_H_
