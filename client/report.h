// Report: what other threads may ask about a client at any time: its counters, who is live, what
// its pushes go in, and whom it waits for.
#ifndef THINWIRE_CLIENT_REPORT_H_
#define THINWIRE_CLIENT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/options.h"
#include "common/ids.h"
#include "proto/counters.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

// Thread-safe.
class Report {
 public:
  // Adds N to a counter, named by its field number: Count(WorkerCounters::kReconnectsFieldNumber).
  void Count(int field_number, uint64_t n = 1) {
    absl::MutexLock lock(&mu_);
    counters_.Add(field_number, n);
  }
  void set_live(std::vector<WorkerId> live) {
    absl::MutexLock lock(&mu_);
    live_ = std::move(live);
  }
  void set_choices(std::vector<GroupCodec> choices) {
    absl::MutexLock lock(&mu_);
    choices_ = std::move(choices);
  }
  void set_waiting(std::string waiting) {
    absl::MutexLock lock(&mu_);
    waiting_ = std::move(waiting);
  }

  WorkerCounters counters() const {
    WorkerCounters counters;
    absl::MutexLock lock(&mu_);
    counters_.CopyTo(counters);
    return counters;
  }
  std::vector<WorkerId> live() const {
    absl::MutexLock lock(&mu_);
    return live_;
  }
  std::vector<GroupCodec> choices() const {
    absl::MutexLock lock(&mu_);
    return choices_;
  }
  std::string waiting() const {
    absl::MutexLock lock(&mu_);
    return waiting_;
  }

 private:
  mutable absl::Mutex mu_;
  CounterArray counters_ ABSL_GUARDED_BY(mu_){*WorkerCounters::descriptor()};
  std::vector<WorkerId> live_ ABSL_GUARDED_BY(mu_);
  std::vector<GroupCodec> choices_ ABSL_GUARDED_BY(mu_);
  std::string waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPORT_H_
