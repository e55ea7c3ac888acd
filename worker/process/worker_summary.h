// WorkerSummary writes the figures in a worker's events for TensorBoard (admin/training_summary.h).
#ifndef THINWIRE_WORKER_PROCESS_WORKER_SUMMARY_H_
#define THINWIRE_WORKER_PROCESS_WORKER_SUMMARY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "admin/training_summary.h"
#include "common/time/clock.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Not thread-safe. Add() ignores Waiting events, which another thread may report at the same time.
class WorkerSummary {
 public:
  // Arguments and errors: those of TrainingSummary::Create.
  static absl::StatusOr<std::unique_ptr<WorkerSummary>> Create(const std::string& folder,
                                                               Clock& clock);

  // Writes the figures of EVENT. Logs the first error; after an error, nothing is written.
  void Add(const WorkerEvent& event);

 private:
  explicit WorkerSummary(std::unique_ptr<TrainingSummary> summary) : summary_(std::move(summary)) {}

  const std::unique_ptr<TrainingSummary> summary_;
  uint64_t step_ = 0;  // the last reported step
  bool failed_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_WORKER_SUMMARY_H_
