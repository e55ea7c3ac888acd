// RunSummary writes the figures of a run of `thinwire train` for TensorBoard
// (admin/training_summary.h).
#ifndef THINWIRE_CLI_TRAIN_RUN_SUMMARY_H_
#define THINWIRE_CLI_TRAIN_RUN_SUMMARY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "admin/training_summary.h"
#include "cli/train/run_record.h"
#include "common/time/clock.h"
#include "proto/worker_event.pb.h"
#include "server/core/optimizer/schedule.h"

namespace thinwire {

// Not thread-safe.
class RunSummary {
 public:
  // SCHEDULE is the job's. Other arguments and errors: those of TrainingSummary::Create.
  static absl::StatusOr<std::unique_ptr<RunSummary>> Create(const std::string& folder,
                                                            const Schedule& schedule, Clock& clock);

  // Writes the figures of RECORD, which are sums and means over all workers, and the staleness that
  // the servers have counted (ServerTotals).
  void Update(const RunRecord& record, const std::map<uint64_t, uint64_t>& staleness);
  // Writes the result of a test. RECORD contains EPOCH.
  void AddTest(const RunRecord& record, const WorkerEvent::Epoch& epoch);
  // Passes everything to the system. Returns the first error so far. After an error, nothing is
  // written.
  absl::Status Flush() { return summary_->Flush(); }

 private:
  RunSummary(std::unique_ptr<TrainingSummary> summary, const Schedule& schedule)
      : summary_(std::move(summary)), schedule_(schedule) {}

  const std::unique_ptr<TrainingSummary> summary_;
  const Schedule schedule_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_SUMMARY_H_
