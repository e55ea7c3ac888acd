#include "admin/job_condition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "admin/html.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

using State = JobCondition::State;
using Cause = JobCondition::Cause;
using html::CountText;
using html::DurationText;

constexpr State kStates[] = {State::kStarting, State::kTraining, State::kWaiting,
                             State::kFinished, State::kDiverged, State::kStopping};

// A job waits if it has made no progress for three times as long as usual, and for this time.
constexpr absl::Duration kShortestWait = absl::Seconds(2);
// The same before the first step, whose usual time is not known.
constexpr absl::Duration kFirstStepWait = absl::Seconds(30);

// The progress of the shards of all servers that answer, at the time of their answers.
struct Progress {
  bool any_shard = false;
  bool all_open = true;
  absl::Duration idle;   // the longest time without progress
  absl::Duration usual;  // the longest usual time between two steps; 0: unknown

  void Add(const ShardStatus& shard) {
    any_shard = true;
    all_open &= shard.open();
    idle = std::max(idle, absl::Seconds(shard.progress_seconds_ago()));
    usual = std::max(usual, absl::Seconds(shard.progress_seconds()));
  }
  bool open() const { return any_shard && all_open; }
  absl::Duration longest_wait() const {
    return usual == absl::ZeroDuration() ? kFirstStepWait : std::max(kShortestWait, 3 * usual);
  }
};

// Makes a JobCondition in the order of the table in job_condition.h.
class Decision {
 public:
  Decision(std::span<const ServerHistory> servers, const JobSummary& summary, absl::Time now)
      : summary_(summary), workers_(WorkersOf(servers, now)) {
    for (const ServerHistory& server : servers) Add(server, now);
    for (const auto& [number, worker] : workers_) Add(number, worker);
  }

  JobCondition Make() && {
    condition_.state = StateOf();
    if (condition_.state == State::kFinished || condition_.state == State::kDiverged ||
        condition_.state == State::kStopping || summary_.live.size() >= summary_.target_workers) {
      condition_.lost.clear();
    }
    AddProblems();
    return std::move(condition_);
  }

 private:
  void Add(const ServerHistory& server, absl::Time now) {
    const uint32_t number = server.server().value;
    if (const absl::Duration outage = server.outage(now); outage > absl::ZeroDuration()) {
      condition_.unreachable.push_back(number);
      outage_ = std::max(outage_, outage);
      condition_.problems.push_back(
          absl::StrCat("server ", number, " has not answered for ", DurationText(outage)));
    }
    const StatusReply* reply = server.current(now);
    if (reply == nullptr) return;
    answered_ = true;
    stopping_ |= reply->stopping();
    if (reply->awaits_rollback()) {
      rollbacks_.push_back(number);
      condition_.problems.push_back(
          absl::StrCat("server ", number, " waits for the lead's decision after its restart"));
    }
    for (const ShardStatus& shard : reply->shards()) progress_.Add(shard);
  }

  void Add(uint32_t number, const WorkerSight& worker) {
    finished_ |= worker.finished;
    if (!worker.diverged.empty() && condition_.symptom.empty()) {
      condition_.symptom = absl::StrCat("worker ", number, ": ", worker.diverged);
    }
    if (!worker.live && (!worker.left || worker.failed)) condition_.lost.push_back(number);
  }

  State StateOf() {
    const bool joined = !workers_.empty();
    const bool none_live = joined && summary_.live.empty();
    if (!condition_.symptom.empty()) return State::kDiverged;
    if (none_live && finished_) return State::kFinished;
    // The shards of servers that were restarted after the end of a run are shut.
    const bool all_left = none_live && progress_.open() && condition_.lost.empty();
    if (stopping_ || (all_left && condition_.unreachable.empty())) return State::kStopping;
    if (!condition_.unreachable.empty() && (joined || !answered_)) {
      return WaitFor(Cause::kServer, NumbersText("server", condition_.unreachable), outage_);
    }
    if (!rollbacks_.empty()) {
      return WaitFor(Cause::kRollback, NumbersText("server", rollbacks_), progress_.idle);
    }
    if (!progress_.open()) return State::kStarting;
    if (none_live) return WaitFor(Cause::kNoWorker, "a live worker", progress_.idle);
    return progress_.idle > kShortestWait ? AfterPause() : State::kTraining;
  }

  // Returns the state of a job that has made no progress for kShortestWait.
  State AfterPause() {
    std::vector<uint32_t> silent;
    for (const uint32_t number : summary_.unfinished) {
      if (workers_.at(number).silent) silent.push_back(number);
    }
    if (!silent.empty()) {
      return WaitFor(Cause::kSilentWorker, NumbersText("worker", silent), progress_.idle);
    }
    if (progress_.idle <= progress_.longest_wait()) return State::kTraining;
    if (summary_.unfinished.empty()) return WaitFor(Cause::kNone, "", progress_.idle);
    return WaitFor(Cause::kSlowWorker, NumbersText("worker", summary_.unfinished), progress_.idle);
  }

  State WaitFor(Cause cause, std::string what, absl::Duration waiting) {
    condition_.cause = cause;
    condition_.waits_for = std::move(what);
    condition_.waiting = waiting;
    return State::kWaiting;
  }

  void AddProblems() {
    std::vector<std::string>& problems = condition_.problems;
    if (condition_.state == State::kDiverged) {
      problems.insert(problems.begin(), absl::StrCat("diverged: ", condition_.symptom));
    }
    for (const uint32_t number : summary_.live) {
      const WorkerSight& worker = workers_.at(number);
      if (!worker.silent) continue;
      problems.push_back(absl::StrCat(
          "worker ", number, " has been silent for ", DurationText(worker.heard),
          "; its lease ends in ", DurationText(std::max(worker.lease_left, absl::ZeroDuration()))));
    }
    if (condition_.cause == Cause::kSlowWorker) {
      problems.push_back(absl::StrCat(condition_.waits_for, " did not finish step ",
                                      CountText(summary_.step), " within ",
                                      DurationText(condition_.waiting)));
    }
    for (const uint32_t number : condition_.lost) {
      problems.push_back(absl::StrCat("worker ", number,
                                      workers_.at(number).failed
                                          ? " has left with an error"
                                          : " was lost: its lease has ended"));
    }
    if (condition_.cause == Cause::kNone && condition_.state == State::kWaiting) {
      problems.push_back(absl::StrCat("no progress for ", DurationText(condition_.waiting)));
    }
  }

  const JobSummary& summary_;
  const std::map<uint32_t, WorkerSight> workers_;
  Progress progress_;
  bool answered_ = false;
  bool stopping_ = false;
  bool finished_ = false;
  absl::Duration outage_;
  std::vector<uint32_t> rollbacks_;
  JobCondition condition_;
};

}  // namespace

JobCondition ConditionOf(std::span<const ServerHistory> servers, const JobSummary& summary,
                         absl::Time now) {
  return Decision(servers, summary, now).Make();
}

const char* NameOf(State state) {
  switch (state) {
    case State::kStarting:
      return "starting";
    case State::kTraining:
      return "training";
    case State::kWaiting:
      return "waiting";
    case State::kFinished:
      return "finished";
    case State::kDiverged:
      return "diverged";
    case State::kStopping:
      return "stopping";
  }
  return "unknown";
}

const char* NameOf(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return "unknown";
    case Cause::kServer:
      return "server";
    case Cause::kRollback:
      return "rollback";
    case Cause::kNoWorker:
      return "no_worker";
    case Cause::kSilentWorker:
      return "silent_worker";
    case Cause::kSlowWorker:
      return "slow_worker";
  }
  return "unknown";
}

std::span<const State> JobStates() { return kStates; }

std::string StateText(const JobCondition& condition) {
  if (condition.waits_for.empty()) return NameOf(condition.state);
  return absl::StrCat(NameOf(condition.state), " for ", condition.waits_for);
}

}  // namespace thinwire
