// AdmissionLead is the lead's part in admitting worker processes (docs/decisions/0065). Before the
// lead replies to a new process, every other server must confirm that it belongs to the lead's run,
// and learns the process's incarnation. The first admitted process begins the run.
//
//   replies of the other servers        result
//   all OK                              OK
//   a refusal: FailedPrecondition etc.  this error: the server has the state of another run, or lost
//                                       the state of this run
//   no reply, or Unavailable            asks again at the next Tick; Unavailable after kPatience
//
// The lead stores the epoch with which each server was admitted, on disk too, and states it from
// then on. A server that was restarted refuses the former epoch, unless it has recovered the state
// of the run: it is then admitted again with its new epoch.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_LEAD_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_LEAD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/decision_store.h"
#include "server/protocols/membership/worker_tokens.h"
#include "server/protocols/peers.h"
#include "server/protocols/protocol.h"
#include "server/protocols/state/job_state.h"

namespace thinwire {

class AdmissionLead final : public Protocol {
 public:
  // How long a process waits for servers that cannot be reached.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  using Done = std::function<void(const absl::Status&)>;

  // PEERS may be null in a job with one server. The other arguments must outlive this object.
  AdmissionLead(JobState& state, const WorkerTokens& tokens, Peers* peers, DecisionStore& store,
                Executor& control)
      : state_(state), tokens_(tokens), peers_(peers), store_(store), control_(control) {}

  // Asks the other servers to admit a process, then calls DONE once, possibly within this call.
  void Announce(WorkerId worker, Incarnation incarnation, absl::Time now, Done done);
  // Asks servers that did not reply again, and ends announcements that are older than kPatience.
  void Tick(absl::Time now) override;
  // Ends all announcements with STATUS.
  void Stop(const absl::Status& status) override;

 private:
  struct Announcement {
    AdmitRequest request;
    absl::Time begin;
    std::set<ServerId> pending;               // servers with a pending call
    std::map<ServerId, AdmitReply> admitted;  // replies of the servers that replied OK
    std::map<ServerId, absl::Status> failed;  // the last error of each server that failed
    Done done;
  };

  void Ask(uint64_t number);
  // Returns OK and begins the run if every server has replied with the epoch that the lead knows.
  absl::Status Confirm(const Announcement& announcement);
  void OnReply(uint64_t number, ServerId server, const absl::StatusOr<AdmitReply>& reply);
  void Finish(uint64_t number, const absl::Status& status);

  JobState& state_;
  const WorkerTokens& tokens_;
  Peers* const peers_;
  DecisionStore& store_;
  Executor& control_;
  std::map<uint64_t, Announcement> announcements_;
  uint64_t next_number_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_LEAD_H_
