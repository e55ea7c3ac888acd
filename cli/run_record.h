// RunRecord: all that a training run has told so far: rows of workers, rows of epochs, what went
// wrong. The progress line, the table and the report are three ways to read it.
#ifndef THINWIRE_CLI_RUN_RECORD_H_
#define THINWIRE_CLI_RUN_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/process.h"
#include "cli/worker_event.h"
#include "common/ids.h"

namespace thinwire {

struct WorkerRow {
  enum class State { kStarting, kTraining, kDone, kStopped, kLost };

  WorkerId worker;
  State state = State::kStarting;
  std::string device;  // where its model computes
  uint64_t step = 0;   // the last one told; once done: how many it made
  uint64_t epoch = 0;
  uint64_t examples = 0;
  double train_loss = 0;  // of the last step; once done: the final one
  double seconds = 0;
  double median_step_seconds = 0;
  bool evaluator = false;
  std::optional<double> test_accuracy;  // the final one
  std::optional<double> loss_scale;     // where the loss is scaled
  WorkerCounts counts;
  std::vector<ChosenCodec> push_codecs;  // once done, where they were chosen
  std::string waiting;
  std::string reason;  // kLost, kStopped: how it ended, and its last error
};

struct EpochRow {
  uint64_t epoch = 0;
  double train_loss = 0;  // the mean over the workers that told it
  uint32_t told_count = 0;
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  WorkerCounts counts;  // the sum over the workers that told it, each until its end of the epoch
};

struct LostServer {
  ServerId server;
  std::string reason;
};

// Not thread-safe.
class RunRecord {
 public:
  explicit RunRecord(uint32_t worker_count);

  // An event of a worker that the run does not have changes nothing.
  void Apply(const WorkerEvent& event);
  // The worker's process has ended. STOPPED: it had been told to stop.
  void WorkerEnded(WorkerId worker, const ExitStatus& exit, bool stopped);
  void ServerEnded(ServerId server, const ExitStatus& exit);

  const std::vector<WorkerRow>& workers() const { return workers_; }
  // By epoch; those nobody has told are left out.
  const std::map<uint64_t, EpochRow>& epochs() const { return epochs_; }
  const std::vector<LostServer>& lost_servers() const { return lost_servers_; }

  uint32_t CountOf(WorkerRow::State state) const;
  WorkerCounts Totals() const;
  uint64_t examples() const;  // of all workers
  uint64_t steps() const;     // the most of any worker
  double seconds() const;     // the most of any worker
  // The mean over the workers that have told one; none before any has.
  std::optional<double> train_loss() const;
  // The final one of the last worker that evaluated at its end, or the last epoch's: when the
  // evaluator leaves before the others, the next worker takes over.
  std::optional<double> test_accuracy() const;
  // The median of the done workers' medians; 0 if none is done.
  double median_step_seconds() const;
  // Whom somebody waits for, as one of the waiting says it; empty if nobody waits.
  std::string waiting() const;

 private:
  std::vector<WorkerRow> workers_;
  std::map<uint64_t, EpochRow> epochs_;
  std::vector<LostServer> lost_servers_;
  std::optional<double> final_test_accuracy_;
};

// "done", "lost".
const char* StateName(WorkerRow::State state);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RUN_RECORD_H_
