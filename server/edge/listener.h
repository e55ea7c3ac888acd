// Listener: a job's services on a port.
//
// Messages: at most kMostMessageBytes each, never compressed (gRPC inflates a message before it
// looks at its size). Flow control: one fixed window per stream, no probing, so that a stream's
// memory is known. Clients may ping every 10 s.
#ifndef THINWIRE_SERVER_EDGE_LISTENER_H_
#define THINWIRE_SERVER_EDGE_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/edge/control_service.h"
#include "server/edge/data_service.h"
#include "server/edge/job.h"

namespace thinwire {

inline constexpr int kMostMessageBytes = 4 << 20;
inline constexpr int kWindowBytes = 2 << 20;

// Whether ADDRESS (host:port) can be reached from this machine alone.
bool IsLoopback(absl::string_view address);

class Listener {
 public:
  // Serves JOB, which outlives the listener, on ADDRESS; port 0 takes a free one. Errors:
  // Unavailable if the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(Job& job, const std::string& address);
  // Stops at once if Stop was not called.
  ~Listener();

  // host:port, with the port that was taken.
  const std::string& address() const { return address_; }

  // Takes no more calls, waits up to GRACE for those there are, and ends the rest.
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
