// RunRecord collects what a training run has reported so far: one row per worker, one per epoch,
// and the failures. The progress line, the final table and the report file are three views of it.
#ifndef THINWIRE_CLI_RUN_RECORD_H_
#define THINWIRE_CLI_RUN_RECORD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/process.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

struct WorkerRow {
  enum class State { kStarting, kTraining, kDone, kStopped, kLost };

  WorkerId worker;
  State state = State::kStarting;
  std::string device;  // where its model computes
  uint64_t step = 0;   // the last reported one; once done, the number of steps it took
  uint64_t epoch = 0;
  uint64_t examples = 0;
  std::optional<double> train_loss;  // the last reported one; once done, that of the last epoch
  double seconds = 0;
  double median_step_seconds = 0;
  bool evaluator = false;
  std::optional<double> test_accuracy;  // of the final parameters
  std::optional<double> loss_scale;     // unset if the loss is not scaled
  WorkerCounters counters;
  std::vector<WorkerEvent::PushCodec> push_codecs;  // once done, if the client chose them
  std::string waiting;                              // empty if the worker waits for nobody
  std::string reason;  // of a lost or stopped worker: how its process ended, and its last error
};

struct EpochRow {
  uint64_t epoch = 0;
  std::optional<double> train_loss;  // mean over the workers that reported one
  uint32_t loss_count = 0;           // of those workers
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  WorkerCounters counters;  // the sum over the workers, each at its end of the epoch
};

struct LostServer {
  ServerId server;
  std::string reason;
};

// Not thread-safe.
class RunRecord {
 public:
  explicit RunRecord(uint32_t worker_count);

  // Ignores events whose worker is not below `worker_count`.
  void Apply(const WorkerEvent& event);
  // Records that the worker's process ended. `stopped`: the run had asked the process to stop.
  void WorkerEnded(WorkerId worker, const ExitStatus& exit, bool stopped);
  void ServerEnded(ServerId server, const ExitStatus& exit);

  const std::vector<WorkerRow>& workers() const { return workers_; }
  // The epochs that at least one worker has finished, by number.
  const std::map<uint64_t, EpochRow>& epochs() const { return epochs_; }
  const std::vector<LostServer>& lost_servers() const { return lost_servers_; }

  uint32_t CountOf(WorkerRow::State state) const;
  // The sum of all workers' counters.
  WorkerCounters Totals() const;
  uint64_t examples() const;  // the sum over the workers
  uint64_t steps() const;     // the largest of any worker
  double seconds() const;     // the largest of any worker
  // The mean over the workers that reported a loss and are not lost; nothing if there are none.
  std::optional<double> train_loss() const;
  // The result of the last worker that evaluated the final parameters, else that of the last
  // evaluated epoch. Several workers may evaluate: when the evaluator leaves first, the next worker
  // takes over.
  std::optional<double> test_accuracy() const;
  // The median of the done workers' medians; 0 if no worker is done.
  double median_step_seconds() const;
  // Returns "worker 0: step 41: waits for worker 3" for the first waiting worker; empty if no
  // worker waits.
  std::string waiting() const;

 private:
  void ApplyStep(const WorkerEvent::Step& step, WorkerRow& row);
  void ApplyEpoch(const WorkerEvent::Epoch& event);
  void ApplyDone(const WorkerEvent::Done& done, WorkerRow& row);

  std::vector<WorkerRow> workers_;
  std::map<uint64_t, EpochRow> epochs_;
  std::vector<LostServer> lost_servers_;
  std::optional<double> final_test_accuracy_;
};

// Returns "done", "lost" and so on.
const char* StateName(WorkerRow::State state);

struct ServerTotals {
  // The sums of the counters of StatusReply, such as accepted_pushes. Its other fields are unset.
  StatusReply counters;
  // The number of accepted pushes per staleness.
  std::map<uint64_t, uint64_t> staleness;

  // Calls `visit` with the name and the sum of each counter, in the order of control.proto.
  void ForEachCounter(
      const std::function<void(const std::string& name, uint64_t value)>& visit) const;
  // The mean over the accepted pushes; 0 if there are none.
  double mean_staleness() const;
  // The largest staleness of an accepted push; 0 if there are none.
  uint64_t max_staleness() const;
};

// Sums the replies of all servers.
ServerTotals TotalsOf(std::span<const StatusReply> replies);

}  // namespace thinwire

#endif  // THINWIRE_CLI_RUN_RECORD_H_
