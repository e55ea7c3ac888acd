// Leaving: leaves servers, with retries. A state machine on an executor: it never blocks.
#ifndef THINWIRE_CLIENT_TRANSPORT_LEAVING_H_
#define THINWIRE_CLIENT_TRANSPORT_LEAVING_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/transport/backoff.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/time/executor.h"
#include "common/time/task_scope.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// Calls Leave of all servers at the same time, with a timeout of two seconds, and then calls
// unreachable ones again until the patience has passed or Hurry is called. Lives on the executor
// LOOP.
class Leaving {
 public:
  // Receives the error of a server that could not be left, or OK.
  using Done = std::function<void(absl::Status)>;

  // TRANSPORT must outlive this object. LOOP is shared with pending calls of the transport.
  Leaving(Transport& transport, std::shared_ptr<Executor> loop, absl::Duration patience,
          std::vector<ServerId> servers, LeaveRequest request, Done done);

  // Begins. DONE is called once, from a task of the loop, and may destroy this object.
  void Start();
  // Calls no server again. May be called before Start. Idempotent.
  void Hurry();

 private:
  void CallAll();
  void OnReply(size_t index, const absl::Status& status);
  void AfterCalls();
  void Finish(const absl::Status& status);

  Transport& transport_;
  const std::shared_ptr<Executor> loop_;
  const absl::Duration patience_;
  std::vector<ServerId> servers_;  // not left yet
  const LeaveRequest request_;
  Done done_;

  absl::Time end_;
  bool hurried_ = false;
  bool pausing_ = false;
  std::vector<absl::Status> statuses_;  // of the present calls, in the order of servers_
  size_t unanswered_count_ = 0;
  absl::Status refused_;      // the last error that no retry can mend
  absl::Status unreachable_;  // the error of a server that is called again
  Backoff backoff_;
  TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_TRANSPORT_LEAVING_H_
