// StatusReport: the state of a client that any thread may read at any time: counters, chosen codecs,
// and the workers or servers that the client waits for.
#ifndef THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_
#define THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "proto/counters.h"
#include "proto/frame.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

// Returns shard numbers as text: "shard 3", "shards 3-9, 12", "no shard". REQUIRES: SHARDS is
// ascending.
std::string ShardRanges(std::span<const ShardId> shards);

// WaitingReads stores the servers' latest notices about reads that they cannot answer yet, and
// prints them as text, for example:
//
//   step 41: waits for worker 3 (shards 0-7)
//   step 0: waits for workers, 1 of 2 joined (shards 0-3)
//   step 0: waits for a worker to send the first values (shard 2)
//
// Names at most kNamedWorkers workers of a notice, so that its memory is bounded, whatever the server
// sends. Not thread-safe.
class WaitingReads {
 public:
  static constexpr size_t kNamedWorkers = 16;

  void Add(const WaitingEntry& entry);
  // Removes the notice about SHARD, whose read was answered. Returns true if there was a notice.
  bool Clear(ShardId shard) { return causes_.erase(shard) > 0; }

  // Returns all notices as text. Shards with the same cause are listed together. The text is empty
  // if there are no notices.
  std::string Text() const;

 private:
  std::map<ShardId, std::string> causes_;
};

// Thread-safe.
class StatusReport {
 public:
  // Adds N to the counter whose field in WorkerCounters has the number FIELD_NUMBER. Example:
  // Count(WorkerCounters::kReconnectsFieldNumber).
  void Count(int field_number, uint64_t n = 1) {
    absl::MutexLock lock(&mu_);
    counters_.Add(field_number, n);
  }
  void set_choices(std::vector<GroupCodec> choices) {
    absl::MutexLock lock(&mu_);
    choices_ = std::move(choices);
  }
  void set_waiting(std::string waiting) {
    absl::MutexLock lock(&mu_);
    waiting_ = std::move(waiting);
    wait_names_workers_ |= !waiting_.empty();
  }
  // While OUTAGE, a text that names servers which do not respond, is not empty, waiting() returns
  // OUTAGE.
  void set_outage(std::string outage) {
    absl::MutexLock lock(&mu_);
    outage_ = std::move(outage);
    wait_names_server_ |= !outage_.empty();
  }

  // Begins a wait of the training thread.
  void BeginWait() {
    absl::MutexLock lock(&mu_);
    wait_names_workers_ = !waiting_.empty();
    wait_names_server_ = !outage_.empty();
  }
  // Ends the wait, which took TIME: adds TIME to the counter of its cause. FIELD_NUMBER is the
  // counter of a wait without set_waiting() or set_outage().
  void EndWait(absl::Duration time, int field_number);

  WorkerCounters counters() const {
    WorkerCounters counters;
    absl::MutexLock lock(&mu_);
    counters_.CopyTo(counters);
    return counters;
  }
  std::vector<GroupCodec> choices() const {
    absl::MutexLock lock(&mu_);
    return choices_;
  }
  std::string waiting() const {
    absl::MutexLock lock(&mu_);
    return outage_.empty() ? waiting_ : outage_;
  }

 private:
  mutable absl::Mutex mu_;
  CounterArray counters_ ABSL_GUARDED_BY(mu_){*WorkerCounters::descriptor()};
  std::vector<GroupCodec> choices_ ABSL_GUARDED_BY(mu_);
  std::string waiting_ ABSL_GUARDED_BY(mu_);
  std::string outage_ ABSL_GUARDED_BY(mu_);
  // Since the last BeginWait: a text of set_waiting() or set_outage() was not empty.
  bool wait_names_workers_ ABSL_GUARDED_BY(mu_) = false;
  bool wait_names_server_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_
