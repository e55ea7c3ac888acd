// RunRecord stores all reports of a training run so far: one row per worker, one row per epoch, and
// the failures. It is the source of the progress line, the final table and the report file.
#ifndef THINWIRE_CLI_TRAIN_RUN_RECORD_H_
#define THINWIRE_CLI_TRAIN_RUN_RECORD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "admin/job_summary.h"
#include "cli/process/process.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "proto/precision.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

struct WorkerRow {
  enum class State { kStarting, kTraining, kDone, kStopped, kLost, kDiverged };

  WorkerId worker;
  State state = State::kStarting;
  std::string device;       // the device on which the worker computes
  uint64_t first_step = 0;  // the step at which the worker's newest process joined
  // The last reported step; in state kDone: first_step plus the number of steps since then.
  uint64_t step = 0;
  uint64_t epoch = 0;
  uint64_t examples = 0;
  // The last reported loss; in state kDone: the mean loss of the last epoch.
  std::optional<double> train_loss;
  double seconds = 0;
  double median_step_seconds = 0;
  bool evaluator = false;
  std::optional<double> test_accuracy;  // of the final parameters; unset with loss: script
  std::optional<double> test_loss;      // of the final parameters
  std::string output;                   // the model file that the worker wrote; "" if none
  std::optional<uint64_t> kept_epoch;   // the epoch of `output`; unset if it has the final model
  std::optional<double> loss_scale;     // unset if the loss is not scaled
  // The L1 norm of the residual that the worker lost; unset if it was not drained.
  std::optional<double> lost_residual_l1;
  WorkerCounters counters;
  // The sums over the processes that ended and were started again. `examples`, `seconds` and
  // `counters` above include them.
  uint64_t ended_examples = 0;
  double ended_seconds = 0;
  WorkerCounters ended_counters;
  // The codecs of the pushes. Set when the worker is done, if the client chose the codecs.
  std::vector<WorkerEvent::PushCodec> push_codecs;
  std::string waiting;  // the reason for the worker's wait; empty if the worker does not wait
  // The symptom of divergence in the last finished epoch, or after kDone of the run; empty if none.
  std::string diverged;
  // For a lost or stopped worker: the exit status of the worker's process and the last error that
  // the worker reported.
  std::string reason;
};

struct EpochRow {
  uint64_t epoch = 0;
  std::optional<double> train_loss;  // mean loss of the workers that reported a loss
  uint32_t loss_count = 0;           // number of workers that reported a loss
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  double seconds = 0;       // the time of the last worker that finished the epoch
  WorkerCounters counters;  // sums of the workers' counters at the end of this epoch
};

struct LostServer {
  ServerId server;
  std::string reason;
};

// A process that died and was started again.
struct Restart {
  std::string process;  // such as "server 1"
  std::string reason;   // its exit status and the last error that it reported
};

// Not thread-safe.
class RunRecord {
 public:
  explicit RunRecord(uint32_t worker_count);

  // Records an event of a worker. Ignores the event if its worker number is not below the number of
  // workers in the run.
  void Apply(const WorkerEvent& event);
  // Records that a worker that an operator has added is started. A worker that was removed before
  // may be added again.
  void WorkerAdded(WorkerId worker);
  // Records that a worker's process ended. `stopped` is true if the run had asked the process to
  // stop.
  void WorkerEnded(WorkerId worker, const ExitStatus& exit, bool stopped);
  void ServerEnded(ServerId server, const ExitStatus& exit);
  // Records that a worker's process ended and was started again. The events of the new process are
  // added to those of the ended one.
  void WorkerRestarted(WorkerId worker, const ExitStatus& exit);
  void ServerRestarted(ServerId server, const ExitStatus& exit);

  const std::vector<WorkerRow>& workers() const { return workers_; }
  // Returns the epochs that at least one worker has finished, by epoch number.
  const std::map<uint64_t, EpochRow>& epochs() const { return epochs_; }
  const std::vector<LostServer>& lost_servers() const { return lost_servers_; }
  const std::vector<Restart>& restarts() const { return restarts_; }

  uint32_t CountOf(WorkerRow::State state) const;
  // Returns the sums of all workers' counters.
  WorkerCounters Totals() const;
  uint64_t examples() const;  // the sum of WorkerRow::examples over all workers
  uint64_t steps() const;     // the largest WorkerRow::step of all workers
  double seconds() const;     // the largest WorkerRow::seconds of all workers
  // Returns the number of steps of the whole job, or 0 until a worker has joined.
  uint64_t planned_steps() const { return planned_steps_; }
  // Returns the mean loss of the workers that reported a loss and are not lost, or nullopt if there
  // are no such workers.
  std::optional<double> train_loss() const;
  // Returns the row of the evaluator if it wrote a model, else nullptr.
  const WorkerRow* writer() const;
  // Returns the test accuracy of the written model, or without one of the newest evaluated epoch.
  // Several workers may evaluate an epoch:
  // if the evaluator leaves before other workers, the next worker becomes the evaluator. The last
  // evaluation of the last epoch then replaces the earlier ones, in its row and here, and its
  // worker becomes the only evaluator.
  std::optional<double> test_accuracy() const;
  // Returns the test loss of the same parameters. With loss: script, there is no test accuracy.
  std::optional<double> test_loss() const;
  // Returns the median of WorkerRow::median_step_seconds over the workers in state kDone, or 0 if
  // no worker is in this state.
  double median_step_seconds() const;
  // Returns the symptom of the worker with the lowest number that reports divergence, such as
  // "worker 0: the loss of step 7 is not finite". Returns "" if no worker does.
  std::string diverged() const;
  // Returns a text about the waiting worker with the lowest number, such as "worker 0: step 41:
  // waits for worker 3". Returns "" if no worker waits.
  std::string waiting() const;

 private:
  void ApplyStep(const WorkerEvent::Step& step, WorkerRow& row);
  void ApplyEpoch(const WorkerEvent::Epoch& event, const WorkerRow& worker);
  void ApplyDone(const WorkerEvent::Done& done, WorkerRow& row);

  std::vector<WorkerRow> workers_;
  std::map<uint64_t, EpochRow> epochs_;
  std::vector<LostServer> lost_servers_;
  std::vector<Restart> restarts_;
  uint64_t planned_steps_ = 0;
};

// Returns the name of a state in lower case, such as "done" or "lost".
const char* StateName(WorkerRow::State state);

struct ServerTotals {
  // The sum of each counter in StatusReply, such as accepted_pushes, over all servers. All other
  // fields are unset.
  StatusReply counters;
  // The shards with saturated_updates, in ascending order.
  std::vector<uint32_t> saturated_shards;
  // The distribution of staleness: maps each staleness to the number of accepted pushes that had
  // this staleness.
  std::map<uint64_t, uint64_t> staleness;
  NoiseSums noise;
  RuleStatus rule;  // in force at server 0
  BatchStatus batch;
  std::vector<PrecisionDecision> decisions;  // of push: adaptive
  uint64_t updates = 0;                      // of the shard with the most

  // Calls `visit` with the name and the sum of each counter, in the order of control.proto.
  void ForEachCounter(
      const std::function<void(const std::string& name, uint64_t value)>& visit) const;
  // Returns the mean staleness of the accepted pushes, or 0 if no push was accepted.
  double mean_staleness() const;
  // Returns the largest staleness of an accepted push, or 0 if no push was accepted.
  uint64_t max_staleness() const;
};

// Returns the sums of the counters in the StatusReply of every server.
ServerTotals TotalsOf(std::span<const StatusReply> replies);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_RECORD_H_
