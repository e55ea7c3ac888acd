// LinkModel models the links of the machines. Every machine has one link to a switch that is never
// the bottleneck. A link carries its bandwidth in each direction at the same time. Messages that
// share a direction of a link share its bandwidth equally, like TCP connections; messages of the
// same sender and receiver are sent one after the other. The last bit of a message arrives one
// latency of both links, and the distance of their sites, after it was sent. Messages carry no data:
// the caller keeps the data until the delivery.
//
//   time of a message of B bytes between otherwise idle links:
//       8 B / min(rates)  +  both latencies  +  the distance
//
// The rates of messages that are sent at the same time are max-min fair: a direction divides its
// bandwidth equally, except that it passes on the bandwidth that a message cannot use because of
// its other link. Rates change when a message starts or ends. Times are rounded to whole
// nanoseconds.
//
// A start or an end takes constant time if every message shares at most one direction with others,
// for example if many workers send to one server. Otherwise it takes time in proportion to the
// messages that are sent at the same time.
//
// Not thread-safe.
#ifndef THINWIRE_SIM_LINK_MODEL_H_
#define THINWIRE_SIM_LINK_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/time/executor.h"
#include "common/time/virtual_time.h"

namespace thinwire::sim {

struct LinkSpec {
  double bits_per_second = 0;  // 0: no limit
  absl::Duration latency = absl::ZeroDuration();

  bool operator==(const LinkSpec&) const = default;
};

// Where the machines are. By default, all are at one site.
struct Sites {
  std::vector<uint32_t> of_machine;                   // empty: one site
  std::vector<std::vector<absl::Duration>> distance;  // by two sites, one way, symmetric

  absl::Duration Between(size_t a, size_t b) const {
    if (of_machine.empty()) return absl::ZeroDuration();
    return distance[of_machine[a]][of_machine[b]];
  }
};

class LinkModel {
 public:
  // LINKS has one element per machine. QUEUE must outlive the network.
  LinkModel(std::vector<LinkSpec> links, VirtualTime& queue, Sites sites = {});
  // REQUIRES: QUEUE runs no function afterwards.
  ~LinkModel();
  LinkModel(const LinkModel&) = delete;
  LinkModel& operator=(const LinkModel&) = delete;

  // Sends BYTES from machine FROM to machine TO and calls DELIVERED when the last bit has arrived.
  // A message of a machine to itself takes no time. REQUIRES: FROM and TO are below the number of
  // links.
  void Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered);

  // Returns the bytes that the machine has sent, without messages to itself.
  uint64_t sent_bytes(size_t machine) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thinwire::sim

#endif  // THINWIRE_SIM_LINK_MODEL_H_
