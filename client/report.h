// Report: what other threads may ask about a client at any time: its counts, who is live, what its
// pushes go in, and whom it waits for.
#ifndef THINWIRE_CLIENT_REPORT_H_
#define THINWIRE_CLIENT_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/options.h"
#include "common/ids.h"

namespace thinwire::client {

// Thread-safe.
class Report {
 public:
  // Adds N to one of the counts.
  void Count(uint64_t ClientStatistics::*count, uint64_t n = 1) {
    absl::MutexLock lock(&mu_);
    statistics_.*count += n;
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

  ClientStatistics statistics() const {
    absl::MutexLock lock(&mu_);
    return statistics_;
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
  ClientStatistics statistics_ ABSL_GUARDED_BY(mu_);
  std::vector<WorkerId> live_ ABSL_GUARDED_BY(mu_);
  std::vector<GroupCodec> choices_ ABSL_GUARDED_BY(mu_);
  std::string waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_REPORT_H_
