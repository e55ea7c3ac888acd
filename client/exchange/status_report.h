// StatusReport: the state of a client that any thread may read at any time: counters, live workers,
// chosen codecs, and the workers or servers that the client waits for.
#ifndef THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_
#define THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/options/client_options.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/counters.h"
#include "proto/frame.h"
#include "proto/precision.pb.h"
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
  // From now on, heartbeats ask the lead for the evaluator.
  void AskForEvaluator() {
    absl::MutexLock lock(&mu_);
    asks_evaluator_ = true;
  }
  // Records the workers that SERVER reports as live, ascending.
  void set_live(ServerId server, std::vector<WorkerId> live) {
    absl::MutexLock lock(&mu_);
    live_[server] = std::move(live);
    if (server == ServerId{0}) ++lead_report_count_;
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
  // Records a test of the present trial (Trials::Report).
  void AddTest(PrecisionTest test) {
    absl::MutexLock lock(&mu_);
    tests_.push_back(std::move(test));
  }
  // Records a test by this worker, the evaluator (Members::ReportTest).
  void set_test(ModelTest test) {
    absl::MutexLock lock(&mu_);
    test_ = std::move(test);
  }
  void ClearTests() {
    absl::MutexLock lock(&mu_);
    tests_.clear();
    test_.reset();
  }
  // Sets the tests and the question in a heartbeat to the lead. Every heartbeat has all of them, because a heartbeat
  // may be lost.
  void FillIn(HeartbeatRequest& request) const {
    absl::MutexLock lock(&mu_);
    request.mutable_tests()->Assign(tests_.begin(), tests_.end());
    if (test_.has_value()) *request.mutable_test() = *test_;
    request.set_asks_evaluator(asks_evaluator_);
    if (stops_before_.has_value()) request.set_stops_before(stops_before_->value);
  }
  void set_evaluator(WorkerId evaluator) {
    absl::MutexLock lock(&mu_);
    evaluator_ = evaluator;
  }
  // From now on, heartbeats tell the lead that the worker was asked to stop before STEP.
  void set_stops_before(Step step) {
    absl::MutexLock lock(&mu_);
    stops_before_ = step;
  }
  // Records the step before which all live workers stop.
  void set_stop_step(Step step) {
    absl::MutexLock lock(&mu_);
    stop_step_ = step;
  }
  // Records the step of the next checkpoint of the servers.
  void set_checkpoint_step(std::optional<Step> step) {
    absl::MutexLock lock(&mu_);
    checkpoint_step_ = step;
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
  // Returns the live workers that server 0 has reported. Only server 0 knows all live workers.
  std::vector<WorkerId> live() const {
    absl::MutexLock lock(&mu_);
    const auto lead = live_.find(ServerId{0});
    return lead == live_.end() ? std::vector<WorkerId>() : lead->second;
  }
  // Returns the evaluator that server 0 has named last; nullopt: none yet.
  std::optional<WorkerId> evaluator() const {
    absl::MutexLock lock(&mu_);
    return evaluator_;
  }
  // Returns the number of times that server 0 has reported live workers.
  uint64_t lead_report_count() const {
    absl::MutexLock lock(&mu_);
    return lead_report_count_;
  }
  // Blocks until server 0 has reported live workers COUNT times. Returns false if TIMEOUT passes
  // first.
  bool WaitForLeadReports(uint64_t count, absl::Duration timeout) const;
  // Blocks until the step before which all live workers stop is known, and returns it; nullopt if
  // TIMEOUT passes first.
  std::optional<Step> WaitForStopStep(absl::Duration timeout) const;
  // Returns the workers except WORKER that any server has reported as live, ascending.
  std::vector<WorkerId> LiveExcept(WorkerId worker) const;
  // Blocks until each of SERVER_COUNT servers has reported live workers, and none except WORKER.
  // Returns false if TIMEOUT passes first.
  bool WaitUntilAlone(WorkerId worker, uint32_t server_count, absl::Duration timeout) const;
  std::vector<GroupCodec> choices() const {
    absl::MutexLock lock(&mu_);
    return choices_;
  }
  // Returns the step of the newest checkpoint that the servers have announced; nullopt if there is
  // none.
  std::optional<Step> checkpoint_step() const {
    absl::MutexLock lock(&mu_);
    return checkpoint_step_;
  }
  std::string waiting() const {
    absl::MutexLock lock(&mu_);
    return outage_.empty() ? waiting_ : outage_;
  }

 private:
  std::vector<WorkerId> LiveExceptLocked(WorkerId worker) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  CounterArray counters_ ABSL_GUARDED_BY(mu_){*WorkerCounters::descriptor()};
  // The live workers that each server has reported last.
  std::map<ServerId, std::vector<WorkerId>> live_ ABSL_GUARDED_BY(mu_);
  uint64_t lead_report_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<GroupCodec> choices_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> checkpoint_step_ ABSL_GUARDED_BY(mu_);
  std::vector<PrecisionTest> tests_ ABSL_GUARDED_BY(mu_);
  std::optional<ModelTest> test_ ABSL_GUARDED_BY(mu_);
  bool asks_evaluator_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<WorkerId> evaluator_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> stops_before_ ABSL_GUARDED_BY(mu_);
  std::optional<Step> stop_step_ ABSL_GUARDED_BY(mu_);
  std::string waiting_ ABSL_GUARDED_BY(mu_);
  std::string outage_ ABSL_GUARDED_BY(mu_);
  // Since the last BeginWait: a text of set_waiting() or set_outage() was not empty.
  bool wait_names_workers_ ABSL_GUARDED_BY(mu_) = false;
  bool wait_names_server_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STATUS_REPORT_H_
