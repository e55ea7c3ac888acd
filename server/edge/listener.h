// Listener serves a job's gRPC services on a port.
//
// A message has at most kMaxMessageBytes and is never compressed, because gRPC inflates a message
// before it checks its size. Each stream has one fixed flow-control window without probing, so that
// its memory is bounded. Clients may ping every 10 s.
#ifndef THINWIRE_SERVER_EDGE_LISTENER_H_
#define THINWIRE_SERVER_EDGE_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/edge/job.h"
#include "server/edge/services.h"

namespace thinwire {

inline constexpr int kMaxMessageBytes = 4 << 20;
inline constexpr int kWindowBytes = 2 << 20;

// Returns whether ADDRESS (host:port) is reachable from this machine only.
bool IsLoopback(absl::string_view address);

class Listener {
 public:
  // Serves JOB, which outlives the listener, on ADDRESS; port 0 picks a free port. Errors:
  // Unavailable if the server cannot listen on the address.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(Job& job, const std::string& address);
  // Stops at once if Stop was not called.
  ~Listener();

  // Returns host:port with the actual port.
  const std::string& address() const { return address_; }

  // Accepts no more calls, waits up to GRACE for the current calls, then cancels them.
  void Stop(absl::Duration grace);

 private:
  explicit Listener(Job& job) : control_(job), data_(job) {}

  ControlService control_;
  DataService data_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_LISTENER_H_
