// Wire: letters of a simulated cluster, each on its way for a drawn number of ticks; while faults
// last, some are lost, some arrive twice, and all may overtake each other.
//
// Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_WIRE_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_WIRE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/event.h"
#include "server/core/testing/histories.h"
#include "server/core/version_log.h"

namespace thinwire {

struct WireFaults {
  uint64_t lost_percent = 0;
  uint64_t twice_percent = 0;
  uint64_t longest_ticks = 3;
};

// To a shard; without an event a heartbeat.
struct ToShard {
  uint32_t shard = 0;
  WorkerId worker;
  Incarnation incarnation;
  std::optional<Event> event;
};

// To a worker's process: a verdict, else the parameters that answer the read for `step`.
struct ToWorker {
  uint32_t shard = 0;
  WorkerId worker;
  Incarnation incarnation;
  std::optional<Judgement> judgement;
  Step step;
  Version version;
  std::optional<Version> held;  // what the reader held when the read was answered
  DeltaChain deltas;            // of a read for what is published
};

template <typename Letter>
class Wire {
 public:
  explicit Wire(Dice& dice) : dice_(dice) {}

  void SetFaults(const WireFaults& faults) { faults_ = faults; }

  void Send(uint64_t now, const Letter& letter) {
    if (!dice_.Percent(faults_.lost_percent)) Carry(now, letter);
    if (dice_.Percent(faults_.twice_percent)) Carry(now, letter);
  }

  bool empty() const { return flying_.empty(); }

  // The letters that arrive up to NOW, in their order.
  std::vector<Letter> Arrived(uint64_t now) {
    std::vector<Letter> arrived;
    while (!flying_.empty() && flying_.begin()->first <= now) {
      arrived.push_back(flying_.begin()->second);
      flying_.erase(flying_.begin());
    }
    return arrived;
  }

 private:
  void Carry(uint64_t now, const Letter& letter) {
    flying_.emplace(now + 1 + dice_.Below(faults_.longest_ticks), letter);
  }

  Dice& dice_;
  WireFaults faults_;
  std::multimap<uint64_t, Letter> flying_;  // by the tick of arrival
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_WIRE_H_
