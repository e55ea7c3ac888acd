// ReadPath: processes parameters from a server's message until the training thread may use them.
//
//   parameters -> OnParameters: awaited? -> Replica::Merge -> GtopkReturns -> StepProgress
//
// ReadPath also requests the parameters of all shards for a step, and stores the servers' notices
// about reads that they cannot answer yet. It drops parameters that no read awaits: these answer a
// message that was sent twice.
#ifndef THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_
#define THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/server_link.h"
#include "common/base/ids.h"
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
  // Records that the parameters of SHARD for STEP will arrive, without requesting them. Call this
  // before a push of SHARD is queued, because a push is also a read.
  void ExpectAfterPush(ShardId shard, Step step);
  // Handles parameters from the server of LINK.
  void OnParameters(ServerLink& link, const ParametersEntry& entry);
  // Handles notices from LINK's server about reads that it cannot answer yet.
  void OnWaiting(ServerLink& link, std::span<const WaitingEntry> entries);

  // Returns the step of the most recent request for parameters.
  Step step() const { return step_; }

 private:
  void Fail(const ServerLink& link, const absl::Status& status);
  void ReadInFull(ServerLink& link, const ParametersEntry& entry);

  const ExchangeParts& parts_;
  const std::vector<std::unique_ptr<ServerLink>>& links_;
  GtopkReturns& returns_;
  const std::function<void(absl::Status)> fail_;
  WaitingReads waiting_;
  LogLimit difference_lines_{10, absl::Seconds(10)};
  Step step_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_
