// EventQueue runs functions in the order of their virtual times. Functions with equal times run in
// the order in which they were added, so a run is deterministic. Not thread-safe.
#ifndef THINWIRE_EXPERIMENTS_CLUSTER_EVENT_QUEUE_H_
#define THINWIRE_EXPERIMENTS_CLUSTER_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace thinwire::lab {

class EventQueue {
 public:
  // Returns the current time, measured from the beginning of the run.
  absl::Duration now() const { return now_; }
  bool empty() const { return events_.empty(); }

  // Calls RUN at time WHEN, or now if WHEN is in the past.
  void At(absl::Duration when, std::function<void()> run) {
    events_.push({std::max(when, now_), number_++, std::move(run)});
  }
  void After(absl::Duration delay, std::function<void()> run) { At(now_ + delay, std::move(run)); }

  // Runs the next function. REQUIRES: !empty().
  void RunNext() {
    // Moving from the top is safe: the element is removed before anyone compares it again.
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.when;
    event.run();
  }

 private:
  struct Event {
    absl::Duration when;
    uint64_t number;
    std::function<void()> run;

    bool operator<(const Event& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };

  std::priority_queue<Event> events_;
  absl::Duration now_;
  uint64_t number_ = 0;
};

}  // namespace thinwire::lab

#endif  // THINWIRE_EXPERIMENTS_CLUSTER_EVENT_QUEUE_H_
