// FaultProxy forwards TCP connections to a target and injects the faults of WireFaults.
//
// Each direction of a connection is a bounded queue of slices. All connections share the bandwidth
// of a direction: a connection reads its next slice when the link has sent its last one. A fast
// sender therefore fills the queue of its own connection only, and then waits.
//
// A cut holds bytes, ends of connections and new connections back; nothing is lost, as after the
// retransmissions of TCP. half-open discards bytes, so `restore` resets the affected connections.
#ifndef THINWIRE_TESTS_FAULT_PROXY_FAULT_PROXY_H_
#define THINWIRE_TESTS_FAULT_PROXY_FAULT_PROXY_H_

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fault_proxy/wire_faults.h"

namespace thinwire {

struct ProxyCounts {
  uint64_t connection_count = 0;
  uint64_t reset_count = 0;  // connections that the proxy has reset as a fault
  uint64_t up_bytes = 0;     // bytes forwarded to the target
  uint64_t down_bytes = 0;

  bool operator==(const ProxyCounts&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const ProxyCounts& counts);
};

struct ProxyOptions {
  std::string listen = "127.0.0.1:0";  // host:port; port 0: a free port
  std::string target;                  // host:port
  WireFaults faults;
  uint64_t seed = 1;  // of the random resets
};

// Lives on the thread that runs its io_context.
class FaultProxy {
 public:
  // Listens and starts to forward. IO must outlive the proxy. Errors: InvalidArgument for a wrong
  // address, Unavailable if the address cannot be listened on; the messages contain the address.
  static absl::StatusOr<std::unique_ptr<FaultProxy>> Start(boost::asio::io_context& io,
                                                           const ProxyOptions& options);
  // Closes all connections.
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Applies a command of wire_faults.h. Errors: InvalidArgument.
  absl::Status Command(std::string_view command);

  // Returns the host:port on which the proxy listens.
  const std::string& address() const;
  const ProxyCounts& counts() const;

 private:
  struct State;
  explicit FaultProxy(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FAULT_PROXY_FAULT_PROXY_H_
