// Listener serves a job's gRPC services on a port.
//
// Limits bound the memory that peers can make the server use. docs/control_calls.md lists all limits and
// their effects on a peer.
//
//   message        at most kMaxMessageBytes. Compressed messages are refused, because gRPC
//                  decompresses a message before it checks the size
//   window         at most MemoryPlan::window_bytes per connection of a worker: gRPC sizes it by the
//                  connection's bandwidth and round trip, or it is fixed if the memory budget is small
//   connection     at most kMaxCallsPerConnection open calls; closed if it has no call for
//                  kMaxIdleTime, or if a ping has no answer, as from a peer that lost its power
//   server         open calls by kind (CallLimits), and the memory of gRPC itself
#ifndef THINWIRE_SERVER_RPC_LISTENER_H_
#define THINWIRE_SERVER_RPC_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/bandwidth_limit.h"
#include "proto/grpc_credentials.h"
#include "server/job/job.h"

namespace grpc {
class Server;
}

namespace thinwire {

inline constexpr int kMaxMessageBytes = 4 << 20;
inline constexpr int kMaxCallsPerConnection = 128;
inline constexpr absl::Duration kMaxIdleTime = absl::Minutes(5);
// With mutual TLS, peers open a new connection for their next calls after this time and up to 10 %
// more, and so show their newest certificate. Calls in progress continue on the old one.
inline constexpr absl::Duration kMaxConnectionAge = absl::Minutes(5);

class Listener {
 public:
  // Starts to serve JOB on ADDRESS. Port 0 selects a free port. JOB must outlive the listener, or the
  // return of AwaitCalls with true. With
  // mutual TLS, CREDENTIALS also name the job whose peers have access (server/rpc/access.h). The
  // messages of streams and the chunks of Masters keep the rates of BANDWIDTH; other calls are
  // neither counted nor delayed, so a heartbeat never waits. Errors: Unavailable if the server
  // cannot listen on ADDRESS.
  static absl::StatusOr<std::unique_ptr<Listener>> Start(
      Job& job, const std::string& address, const Credentials& credentials = Credentials(),
      absl::Duration max_connection_age = kMaxConnectionAge,
      const Bandwidth& bandwidth = Bandwidth());
  // Cancels the current calls at once if Stop() was not called.
  ~Listener();

  // Returns the listening address as host:port, with the actual port.
  const std::string& address() const { return address_; }

  // Makes the health service answer NOT_SERVING from now on, and say so to its watchers.
  void SetNotServing();
  // The job is made anew, on the same port and connections. Suspend refuses new calls with Unavailable.
  // AwaitCalls then waits up to GRACE for the current ones, which the job ends, and returns whether
  // all have ended. Resume serves JOB; the numbers of its workers must be those of the first job.
  void Suspend();
  bool AwaitCalls(absl::Duration grace);
  void Resume(Job& job);
  // Returns the numbers of open calls, for a message.
  std::string OpenCalls() const;
  // Calls SetNotServing(), lifts the limit of the bytes that are sent, accepts no more calls, waits
  // up to GRACE for the current calls, then cancels them.
  void Stop(absl::Duration grace);

 private:
  struct Services;
  Listener(Job& job, const Credentials& credentials, const Bandwidth& bandwidth);

  const std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_RPC_LISTENER_H_
