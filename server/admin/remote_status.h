// RemoteStatus asks another server for its status over gRPC, with a channel of its own.
#ifndef THINWIRE_SERVER_ADMIN_REMOTE_STATUS_H_
#define THINWIRE_SERVER_ADMIN_REMOTE_STATUS_H_

#include <memory>
#include <string>

#include "common/base/ids.h"
#include "proto/grpc_credentials.h"
#include "proto/pending_calls.h"
#include "server/admin/job_watch.h"

namespace thinwire {

// Thread-safe.
class RemoteStatus {
 public:
  RemoteStatus(const std::string& address, ServerId server, const Credentials& credentials);
  // Cancels the pending calls and waits for their ends.
  ~RemoteStatus();
  RemoteStatus(const RemoteStatus&) = delete;
  RemoteStatus& operator=(const RemoteStatus&) = delete;

  // Calls DONE on a thread of gRPC. Errors: those of gRPC; DeadlineExceeded after 5 s;
  // ResourceExhausted for a reply above 4 MiB.
  void Ask(StatusSource::Done done);

 private:
  struct Stub;
  const std::unique_ptr<Stub> stub_;
  PendingCalls calls_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_ADMIN_REMOTE_STATUS_H_
