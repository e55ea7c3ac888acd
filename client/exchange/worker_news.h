// WorkerNews: what the heartbeats of this worker tell the lead. Every heartbeat has all of it,
// because a heartbeat may be lost.
#ifndef THINWIRE_CLIENT_EXCHANGE_WORKER_NEWS_H_
#define THINWIRE_CLIENT_EXCHANGE_WORKER_NEWS_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/precision.pb.h"

namespace thinwire::client {

// Thread-safe.
class WorkerNews {
 public:
  // From now on, heartbeats ask the lead for the evaluator.
  void AskForEvaluator() {
    absl::MutexLock lock(&mu_);
    asks_evaluator_ = true;
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
  // Records how far this worker has trained (Members::ReportProgress).
  void set_progress(WorkerProgress progress) {
    absl::MutexLock lock(&mu_);
    progress_ = std::move(progress);
  }
  // From now on, heartbeats tell the lead that the worker was asked to stop before STEP.
  void set_stops_before(Step step) {
    absl::MutexLock lock(&mu_);
    stops_before_ = step;
  }
  // Adds the news to a heartbeat to the lead.
  void FillIn(HeartbeatRequest& request) const {
    absl::MutexLock lock(&mu_);
    request.mutable_tests()->Assign(tests_.begin(), tests_.end());
    if (test_.has_value()) *request.mutable_test() = *test_;
    if (progress_.has_value()) *request.mutable_progress() = *progress_;
    request.set_asks_evaluator(asks_evaluator_);
    if (stops_before_.has_value()) request.set_stops_before(stops_before_->value);
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<PrecisionTest> tests_ ABSL_GUARDED_BY(mu_);
  std::optional<ModelTest> test_ ABSL_GUARDED_BY(mu_);
  std::optional<WorkerProgress> progress_ ABSL_GUARDED_BY(mu_);
  bool asks_evaluator_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Step> stops_before_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_WORKER_NEWS_H_
