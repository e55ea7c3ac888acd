// RunDisplay shows a training run at regular intervals: the progress line, the admin page and the
// figures for TensorBoard.
#ifndef THINWIRE_CLI_TRAIN_RUN_DISPLAY_H_
#define THINWIRE_CLI_TRAIN_RUN_DISPLAY_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "cli/rpc/server_calls.h"
#include "cli/terminal/console.h"
#include "cli/train/progress.h"
#include "cli/train/run_record.h"
#include "cli/train/train_setting.h"
#include "common/time/clock.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Not thread-safe.
class RunDisplay {
 public:
  // All arguments must outlive the RunDisplay.
  RunDisplay(const TrainSetting& setting, Console& console, Clock& clock);

  // Shows the views that are due. The servers are asked for the next ones. CALLS: null before the
  // servers are started. WORKERS_RUN: the run has a progress.
  void Update(const RunRecord& record, ServerCalls* calls, bool workers_run);
  // Returns the time of the next Update().
  absl::Time next() const;

  // Shows the results of a test, which EVENT reports.
  void ShowTest(const RunRecord& record, const WorkerEvent& event);
  // Writes the figures for TensorBoard. STALENESS: as ServerTotals::staleness.
  void WriteSummary(const RunRecord& record, const std::map<uint64_t, uint64_t>& staleness);

 private:
  void ShowProgress(const RunRecord& record, ServerCalls& calls);
  void UpdateRecords(const RunRecord& record, ServerCalls* calls);

  const TrainSetting& setting_;
  Console& console_;
  Clock& clock_;
  Progress progress_;
  absl::Time next_progress_;
  absl::Time next_records_;  // infinite without page and figures
  bool summary_failed_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_DISPLAY_H_
