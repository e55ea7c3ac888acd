// SimNetwork carries the messages of a simulated cluster. Each message takes a random number of
// ticks, so messages can arrive out of order. While faults are on, messages may also be lost or
// duplicated.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_NETWORK_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_NETWORK_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/publish/version_log.h"
#include "server/core/testing/random_events.h"

namespace thinwire {

struct NetworkFaults {
  uint64_t lost_percent = 0;
  uint64_t twice_percent = 0;
  uint64_t longest_ticks = 3;
};

// A message to a shard. A message without an event is a heartbeat.
struct MessageToShard {
  uint32_t shard = 0;
  WorkerId worker;
  Incarnation incarnation;
  std::optional<Event> event;
};

// A message to a worker's process: a verdict, or the answer to the read for `step`.
struct MessageToWorker {
  uint32_t shard = 0;
  WorkerId worker;
  Incarnation incarnation;
  std::optional<Judgement> judgement;
  Step step;
  Version version;
  std::optional<Version> held;  // the published version that the reader holds
  DeltaChain deltas;            // the deltas, if the answer is published parameters
};

template <typename Message>
class SimNetwork {
 public:
  explicit SimNetwork(SeededRandom& random) : random_(random) {}

  void SetFaults(const NetworkFaults& faults) { faults_ = faults; }

  void Send(uint64_t now, const Message& message) {
    if (!random_.Percent(faults_.lost_percent)) Deliver(now, message);
    if (random_.Percent(faults_.twice_percent)) Deliver(now, message);
  }

  bool empty() const { return in_flight_.empty(); }

  // Removes and returns the messages that arrive at tick NOW or earlier, in order of arrival.
  std::vector<Message> Arrived(uint64_t now) {
    std::vector<Message> arrived;
    while (!in_flight_.empty() && in_flight_.begin()->first <= now) {
      arrived.push_back(in_flight_.begin()->second);
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

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_NETWORK_H_
