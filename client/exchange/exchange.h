// Exchange: connects a client's push pipeline and read path with the links to its servers, and
// detects servers that stop responding.
//
//   PushPipeline -> ServerLink   pushes
//   ReadPath     -> ServerLink   requests for parameters
//   ServerLink -> PushPipeline   verdicts
//   ServerLink -> ReadPath       parameters
//
// The exchange ends with the first failure. Examples: a server stops responding, a server sends an
// invalid message, a device reports an error. A rollback of the servers ends the exchange too; the
// client then makes a new one (docs/decisions/0082). While a server does not respond, but may still
// return, the exchange reports the servers that the client waits for.
#ifndef THINWIRE_CLIENT_EXCHANGE_EXCHANGE_H_
#define THINWIRE_CLIENT_EXCHANGE_EXCHANGE_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/push_pipeline.h"
#include "client/exchange/read_path.h"
#include "client/exchange/server_link.h"
#include "client/exchange/server_liveness.h"
#include "common/base/ids.h"
#include "common/time/task_scope.h"
#include "proto/control.pb.h"
#include "proto/frame.h"

namespace thinwire::client {

// Lives on the event loop `parts.loop`: only tasks of this loop call its functions.
class Exchange final : private ServerLink::Observer {
 public:
  // REQUEST: the Join request of this process. The exchange uses it, with the incarnation and run
  // of the lead's reply, to join a server that was started again. REPLIES: the servers' replies to
  // Join, indexed by server number.
  Exchange(ExchangeParts parts, JoinRequest request, const std::vector<JoinReply>& replies);

  // Requests all parameters for the step FIRST, and starts the heartbeats.
  void Start(Step first);
  PushPipeline& pushes() { return pushes_; }
  // Returns the first step without all verdicts.
  Step next() const { return pushes_.next(); }
  // Ends every wait of the training thread with FAILURE, and stops the exchange. REQUIRES: FAILURE
  // is not OK.
  void Fail(absl::Status failure);
  // Closes all links.
  void Stop();

  // Returns true if the exchange keeps an accepted push because the server has not yet reported
  // which of the push's values gTop-k selected.
  bool returns_pending() const { return returns_.pending(); }
  // Sends a heartbeat to the lead without waiting for its time.
  void HeartbeatToLead() { links_[0]->HeartbeatNow(); }
  // Returns the L1 norm of the values of all pushes without a verdict.
  double UnjudgedNorm() const;
  // Returns the server whose outage ended the exchange; nullopt if no outage did.
  std::optional<ServerId> lost() const { return lost_; }
  // Returns the generation of the rollback that ended the exchange; nullopt if no rollback did.
  std::optional<Generation> rollback() const { return rollback_; }

 private:
  void OnMessage(ServerLink& link, const ServerFrame& message) override;
  void OnQueueRoom() override { pushes_.OnQueueRoom(); }
  void OnAdopted(ServerLink& link) override { reads_.DropKept(link.server()); }
  void OnFailure(absl::Status failure) override { Fail(std::move(failure)); }
  void OnRollback(Generation generation) override;

  void CheckServers();
  void FailForOutage(ServerLink& link, const ServerOutage& outage);
  // Reports the servers that do not respond at NOW and that the client waits for.
  void ReportOutages(absl::Time now);

  const ExchangeParts parts_;
  const JoinRequest rejoin_;
  std::vector<std::unique_ptr<ServerLink>> links_;  // indexed by server number
  GtopkReturns returns_;
  ReadPath reads_;
  PushPipeline pushes_;

  const absl::Duration longest_outage_;  // the exchange fails if an outage is longer
  absl::Duration check_interval_;
  absl::Time last_check_;
  std::vector<bool> warned_;  // for each server: its present outage was logged
  bool stopped_ = false;
  std::optional<ServerId> lost_;
  std::optional<Generation> rollback_;
  const TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_EXCHANGE_H_
