// RunState decides how a training run ends. It is a pure state machine: the caller hands in the
// events with the time, and sends the signals.
//
//   phase              event                            next phase         signal
//   running            a server is lost                 reporting          -
//   running            a worker has left, diverged      reporting          -
//   reporting          the deadline                     stopping           SIGTERM to the workers
//   running to         the first stop signal            stopping           SIGTERM to the workers
//     stopping
//   stopping           the deadline                     stopping           SIGKILL to the workers
//   any                the workers have ended           stopping servers   SIGTERM to all
//   stopping servers   the deadline                     stopping servers   SIGKILL to all
//   any                a second SIGINT or SIGTERM       the same           SIGKILL to all
//
//   deadline of phase   the time after its begin
//   reporting           RunTimes::report after a lost server; 0 after divergence; none if no worker
//                       runs
//   stopping            RunTimes::workers, none after SIGKILL
//   stopping servers    RunTimes::servers, none after SIGKILL
#ifndef THINWIRE_CLI_TRAIN_RUN_STATE_H_
#define THINWIRE_CLI_TRAIN_RUN_STATE_H_

#include <ostream>

#include "absl/time/time.h"

namespace thinwire {

struct RunTimes {
  absl::Duration report;   // for workers to report a lost server
  absl::Duration workers;  // from SIGTERM to SIGKILL
  absl::Duration servers;  // from SIGTERM to SIGKILL
};

// A signal to send.
struct RunSignal {
  enum class To { kNobody, kWorkers, kAll };

  To to = To::kNobody;
  int number = 0;

  bool operator==(const RunSignal&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const RunSignal& signal);
};

// Not thread-safe.
class RunState {
 public:
  enum class Phase { kRunning, kReporting, kStopping, kStoppingServers };

  explicit RunState(const RunTimes& times) : times_(times) {}

  // The events. RECEIVED is the number of a stop signal.
  RunSignal StopSignal(int received, absl::Time now);
  void LoseServer(bool workers_run, absl::Time now);
  void Diverge(absl::Time now);
  RunSignal StopServers(absl::Time now);
  // The time is NOW.
  RunSignal Tick(absl::Time now);

  Phase phase() const { return phase_; }
  absl::Time deadline() const { return deadline_; }
  // Returns whether no process is started again.
  bool ending() const { return phase_ != Phase::kRunning; }
  // Returns the first stop signal, or 0.
  int stop_signal() const { return stop_signal_; }
  // Returns whether a worker that ends was stopped by this run, in contrast to lost.
  bool stops_workers() const { return stop_signal_ != 0 || diverged_; }

 private:
  void Enter(Phase phase, absl::Time deadline);

  const RunTimes times_;
  Phase phase_ = Phase::kRunning;
  absl::Time deadline_ = absl::InfiniteFuture();  // of the phase
  int stop_signal_ = 0;
  bool diverged_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_RUN_STATE_H_
