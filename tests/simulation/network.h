// The messages of a simulated cluster, and the network that carries them. Each message takes a
// random number of ticks, so messages can arrive out of order. While faults are on, messages may be
// lost, and frames may be duplicated.
#ifndef THINWIRE_TESTS_SIMULATION_NETWORK_H_
#define THINWIRE_TESTS_SIMULATION_NETWORK_H_

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/memory/byte_chain.h"
#include "proto/control.pb.h"
#include "server/core/testing/random_events.h"

namespace thinwire::simulation {

// The number of a worker's process, in the order of the starts.
using ProcessId = uint32_t;

// A message to a server: a frame of the data stream, or a control call.
struct ToServer {
  ServerId server;
  ProcessId process = 0;  // the sender
  uint64_t call = 0;      // the number of a control call; its reply has the same number
  std::variant<ByteChain, JoinRequest, HeartbeatRequest, LeaveRequest> body;
};

// A message to a worker's process: a frame of the data stream, or the reply to a control call.
struct ToWorker {
  ServerId server;  // the sender
  ProcessId process = 0;
  uint64_t call = 0;
  std::variant<ByteChain, absl::StatusOr<JoinReply>, HeartbeatReply, LeaveReply> body;
};

struct NetworkFaults {
  uint64_t lost_percent = 0;
  uint64_t twice_percent = 0;
  uint64_t longest_ticks = 3;
};

// Not thread-safe.
template <typename Message>
class Network {
 public:
  // RANDOM must outlive the network.
  explicit Network(SeededRandom& random) : random_(random) {}

  void SetFaults(const NetworkFaults& faults) { faults_ = faults; }

  void Send(uint64_t now, const Message& message) {
    const bool is_frame = std::holds_alternative<ByteChain>(message.body);
    if (!random_.Percent(faults_.lost_percent)) Deliver(now, message);
    if (is_frame && random_.Percent(faults_.twice_percent)) Deliver(now, message);
  }

  // Delivers MESSAGE again later, because its receiver is suspended.
  void Delay(uint64_t now, const Message& message) { in_flight_.emplace(now + 1, message); }

  bool empty() const { return in_flight_.empty(); }

  // Removes and returns the messages that arrive at tick NOW or earlier, in order of arrival.
  std::vector<Message> Arrived(uint64_t now) {
    std::vector<Message> arrived;
    while (!in_flight_.empty() && in_flight_.begin()->first <= now) {
      arrived.push_back(std::move(in_flight_.begin()->second));
      in_flight_.erase(in_flight_.begin());
    }
    return arrived;
  }

 private:
  void Deliver(uint64_t now, const Message& message) {
    in_flight_.emplace(now + 1 + random_.Below(faults_.longest_ticks), message);
  }

  SeededRandom& random_;
  NetworkFaults faults_;
  std::multimap<uint64_t, Message> in_flight_;  // messages by their tick of arrival
};

}  // namespace thinwire::simulation

#endif  // THINWIRE_TESTS_SIMULATION_NETWORK_H_
