// ReadPath: the way of parameters from a server's message to the training thread.
//
//   parameters -> OnParameters: awaited? -> Replica::Merge -> GtopkReturns -> StepProgress
//
// It also requests the parameters of all shards for a step, and keeps the servers' notices about
// reads that they cannot answer yet. Parameters that no read awaits are dropped: they answer a
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
#include "common/ids.h"
#include "proto/frame.h"

namespace thinwire::client {

// Lives on the loop of PARTS.
class ReadPath {
 public:
  // LINKS: one per server, by number. FAIL ends the exchange. All arguments must outlive this
  // object.
  ReadPath(const ExchangeParts& parts, const std::vector<std::unique_ptr<ServerLink>>& links,
           GtopkReturns& returns, std::function<void(absl::Status)> fail);

  // Requests the parameters of all shards for STEP, and sends the requests.
  void ReadAll(Step step);
  // Expects the parameters of SHARD for STEP without a request: a push of SHARD, which is also a
  // read, is about to be queued.
  void ExpectAfterPush(ShardId shard, Step step);
  // Handles parameters from the server of LINK.
  void OnParameters(ServerLink& link, const ParametersEntry& entry);
  // Handles notices that the server of LINK cannot answer reads yet.
  void OnWaiting(ServerLink& link, std::span<const WaitingEntry> entries);

  // Returns the step whose parameters were requested last.
  Step step() const { return step_; }

 private:
  void Fail(const ServerLink& link, const absl::Status& status);
  void ReadInFull(ServerLink& link, const ParametersEntry& entry);

  const ExchangeParts& parts_;
  const std::vector<std::unique_ptr<ServerLink>>& links_;
  GtopkReturns& returns_;
  const std::function<void(absl::Status)> fail_;
  WaitingReads waiting_;
  Step step_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_READ_PATH_H_
