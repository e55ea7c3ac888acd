// Measures the network link to another machine. On that machine runs either `thinwire doctor
// --listen`, or a server of a job.
//
//   the other side   round trip       upload               download
//   doctor           empty messages   messages of 1 MiB    messages of 1 MiB
//   a server         Status calls     not measured         the parameters (Masters)
#ifndef THINWIRE_CLI_DOCTOR_LINK_H_
#define THINWIRE_CLI_DOCTOR_LINK_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "proto/grpc_credentials.h"

namespace grpc {
class Channel;
class Server;
}  // namespace grpc

namespace thinwire {

struct LinkSpeed {
  absl::Duration round_trip;   // the median
  std::optional<double> up;    // bytes per second; nullopt: not measured
  std::optional<double> down;  // bytes per second; nullopt: not measured
};

// Measures for up to a few seconds. Errors: those of gRPC.
absl::StatusOr<LinkSpeed> MeasureLink(const std::shared_ptr<grpc::Channel>& channel, Clock& clock);

// The side of a link that `thinwire doctor --listen` runs. Thread-safe.
class LinkListener {
 public:
  // Listens on ADDRESS. Port 0 takes a free port. With mutual TLS, every caller with a certificate
  // of a trusted authority may measure. Errors: Unavailable if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<LinkListener>> Start(const std::string& address,
                                                             const Credentials& credentials);
  // Cancels the current calls.
  ~LinkListener();

  // Returns the listening address as host:port, with the actual port.
  const std::string& address() const { return address_; }

 private:
  class Service;
  LinkListener();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_LINK_H_
