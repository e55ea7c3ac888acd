#include "cli/train/run_state.h"

#include <signal.h>

namespace thinwire {
namespace {

using To = RunSignal::To;

}  // namespace

std::ostream& operator<<(std::ostream& out, const RunSignal& signal) {
  if (signal.to == To::kNobody) return out << "no signal";
  return out << "signal " << signal.number << " to "
             << (signal.to == To::kAll ? "all" : "the workers");
}

RunSignal RunState::StopSignal(int received, absl::Time now) {
  if (stop_signal_ != 0) {
    // A closed terminal and the end of a login may send SIGHUP after another signal.
    return received == SIGHUP ? RunSignal() : RunSignal{To::kAll, SIGKILL};
  }
  stop_signal_ = received;
  if (phase_ != Phase::kStoppingServers) Enter(Phase::kStopping, now + times_.workers);
  return {To::kWorkers, SIGTERM};
}

void RunState::LoseServer(bool workers_run, absl::Time now) {
  if (phase_ != Phase::kRunning) return;
  Enter(Phase::kReporting, workers_run ? now + times_.report : absl::InfiniteFuture());
}

void RunState::Diverge(absl::Time now) {
  diverged_ = true;
  if (phase_ == Phase::kRunning) Enter(Phase::kReporting, now);
}

RunSignal RunState::StopServers(absl::Time now) {
  Enter(Phase::kStoppingServers, now + times_.servers);
  return {To::kAll, SIGTERM};
}

RunSignal RunState::Tick(absl::Time now) {
  if (now < deadline_) return {};
  switch (phase_) {
    case Phase::kRunning:
      return {};
    case Phase::kReporting:
      Enter(Phase::kStopping, now + times_.workers);
      return {To::kWorkers, SIGTERM};
    case Phase::kStopping:
      deadline_ = absl::InfiniteFuture();
      return {To::kWorkers, SIGKILL};
    case Phase::kStoppingServers:
      deadline_ = absl::InfiniteFuture();
      return {To::kAll, SIGKILL};
  }
  return {};
}

void RunState::Enter(Phase phase, absl::Time deadline) {
  phase_ = phase;
  deadline_ = deadline;
}

}  // namespace thinwire
