// Admission is the lead's part in admitting worker processes (docs/decisions/0065). Before the lead
// replies to a new process, every other server must confirm that it belongs to the lead's run, and
// learns the process's incarnation. The first admitted process begins the run.
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
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_H_
#define THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"
#include "server/protocols/peers.h"

namespace thinwire {

// Returns the error for a server whose epoch is no longer the one with which it was admitted.
absl::Status LostState(ServerId server, Epoch expected, Epoch got);

class Admission {
 public:
  // How long a process waits for servers that cannot be reached.
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  using Done = std::function<void(const absl::Status&)>;

  // COMMON contains the job, the run and the key of its tokens. PEERS, which may be null in a job
  // with one server, and CONTROL, the control thread, must outlive this object. RECORD stores
  // epochs() and is called after every change of them.
  Admission(AdmitRequest common, uint32_t server_count, Peers* peers, Executor& control,
            std::function<void()> record);

  // Replaces the run, after the lead has recovered the state of an earlier process.
  void set_run(RunId run, const std::string& token_key) {
    common_.set_run(run.value);
    common_.set_token_key(token_key);
  }
  // Sets AdmitRequest.begins_again of later announcements.
  void set_begins_again(bool begins_again) { common_.set_begins_again(begins_again); }
  // Sets the epochs to those that an earlier process of the lead has stored. Ignores the servers
  // that the job does not have.
  void Restore(const std::vector<Epoch>& epochs);
  // Returns the epoch with which each server was admitted, by server number; 0: not admitted yet.
  const std::vector<Epoch>& epochs() const { return epochs_; }

  // Asks the other servers to admit a process, then calls DONE once, possibly within this call.
  void Announce(WorkerId worker, Incarnation incarnation, absl::Time now, Done done);
  // Asks servers that did not reply again, and ends announcements that are older than kPatience.
  void Tick(absl::Time now);
  // Ends all announcements with STATUS.
  void Cancel(const absl::Status& status);

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

  AdmitRequest common_;
  Peers* const peers_;
  Executor& control_;
  const std::function<void()> record_;
  std::vector<Epoch> epochs_;
  std::map<uint64_t, Announcement> announcements_;
  uint64_t next_number_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_MEMBERSHIP_ADMISSION_H_
