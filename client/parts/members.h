// Members: the part of a client that knows the job's other workers.
#ifndef THINWIRE_CLIENT_PARTS_MEMBERS_H_
#define THINWIRE_CLIENT_PARTS_MEMBERS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/parts/core_thread.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire::client {

class Members {
 public:
  explicit Members(CoreThread& thread) : thread_(thread) {}

  // Returns the workers with valid leases, from the last heartbeat reply of server 0; empty before
  // Join. Thread-safe.
  std::vector<WorkerId> live() const;
  // Returns true if an operator has removed this worker, which must leave between two steps.
  // Thread-safe.
  bool retired() const;

  // The waits below return the errors of Client::WaitTensor. REQUIRES: Join has succeeded.
  //
  // Blocks until server 0 has answered a heartbeat that was sent after this call, so that live()
  // has every worker that joined before.
  absl::Status Refresh();
  // Returns the evaluator, which the lead appoints when the first worker has finished a step, and
  // anew if it is lost or leaves before the last step. Blocks until the lead has named it.
  absl::StatusOr<WorkerId> Evaluator();
  // Sends TEST, a test of the model by this worker, to the lead.
  void ReportTest(const ModelTest& test);
  // Sends PROGRESS, how far this worker has trained, to the lead with the next heartbeats. The lead's
  // status page shows it. Thread-safe.
  void ReportProgress(WorkerProgress progress);
  // Blocks until every server reports that no other worker is live: the others have left, or their
  // leases have expired. Client::waiting() names the other workers meanwhile. Not called between
  // BeginStep and NextStep.
  absl::Status WaitUntilAlone();

 private:
  CoreThread& thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_MEMBERS_H_
