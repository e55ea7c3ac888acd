// ReadPath: processes parameters from a server's message until the training thread may use them.
//
//   parameters -> OnParameters: awaited? -> Replica::Merge -> GtopkReturns -> StepProgress
//
// A worker may compute a step before the read for the step is answered. Each answer states the last
// step that the worker may compute with its parameters. ReadPath keeps the answers of a shard that
// arrive while the worker uses the shard's parameters, and merges them when the shard's gradient is
// encoded.
//
// ReadPath also requests the parameters of all shards for a step, and stores the servers' notices
// about reads that they cannot answer yet. It drops parameters that no read awaits: these answer a
// message that was sent twice.
#ifndef THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_
#define THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/server_link.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "common/time/log_limit.h"
#include "proto/frame.h"

namespace thinwire::client {

// Lives on the event loop `parts.loop`: only tasks of this loop call the functions of ReadPath.
class ReadPath {
 public:
  // LINKS: one link per server, indexed by server number. FAIL ends the exchange. All arguments
  // must outlive this object.
  ReadPath(const ExchangeParts& parts, const std::vector<std::unique_ptr<ServerLink>>& links,
           GtopkReturns& returns, std::function<void(absl::Status)> fail);

  // Requests the parameters of all shards for STEP, and sends the requests.
  void ReadAll(Step step);
  // Records that the next step of SHARD is STEP, whose parameters will arrive, without requesting
  // them. Call this before a push of SHARD is queued, because a push is also a read.
  void ExpectAfterPush(ShardId shard, Step step);
  // Merges the answers that were kept while SHARD was used. Call this after a push of SHARD is
  // queued.
  void MergeKept(ShardId shard);
  // Drops the kept answers of SERVER, which has gone back to an earlier state.
  void DropKept(ServerId server);
  // Makes the next step wait for the answers to its own reads.
  void ExpectExact();
  // Handles parameters from the server of LINK.
  void OnParameters(ServerLink& link, const ParametersEntry& entry);
  // Handles notices from LINK's server about reads that it cannot answer yet.
  void OnWaiting(ServerLink& link, std::span<const WaitingEntry> entries);

  // Returns the step of the most recent request for parameters.
  Step step() const { return step_; }
  // Returns how many steps the newest answer lets the worker compute after the answer's own step.
  uint32_t steps_ahead() const { return steps_ahead_; }

 private:
  struct Shard {
    Step next;                 // the step for which parameters are needed next
    std::optional<Step> held;  // the step of the newest answer in the replica
    Step last;                 // the last step that `held` lets the worker compute
    bool exact = false;        // the step `next` needs the answer to its own read
    bool reads_in_full = false;
    std::deque<ParametersEntry> kept;
  };

  ServerLink& LinkOf(ShardId shard) { return *links_[parts_.partition.server(shard).value]; }
  // Returns whether the replica has parameters for the next step of SHARD.
  bool MayUse(const Shard& shard) const;
  uint32_t StepsAhead(const ParametersEntry& entry) const {
    return works_ahead_ ? std::min(entry.steps_ahead, kMostInFlight) : 0;
  }
  // Decodes ENTRY into the replica.
  void Merge(ServerLink& link, const ParametersEntry& entry);
  void Fail(const ServerLink& link, const absl::Status& status);
  void ReadInFull(ServerLink& link, const ParametersEntry& entry);

  const ExchangeParts& parts_;
  const std::vector<std::unique_ptr<ServerLink>>& links_;
  GtopkReturns& returns_;
  const std::function<void(absl::Status)> fail_;
  WaitingReads waiting_;
  LogLimit difference_lines_{10, absl::Seconds(10)};
  const bool works_ahead_;
  std::vector<Shard> shards_;  // by shard number
  uint32_t steps_ahead_ = 0;
  Step step_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_
