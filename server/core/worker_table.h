// WorkerTable stores a shard's frontier and one row per worker: the worker's liveness, its `next`
// step and its waiting read.
//
//   joined ----read----> live ----expire----> expired ----any message, return----> live
//      ^                  |                     |
//      +-- a newer incarnation                  +--leave--> left (later messages are fenced)
//
// `next` is the first step that no incarnation of the worker has finished. A push that was
// accepted, late or refused finishes its step; a read for step t finishes every step below t.
// Neither `next` nor the frontier ever decreases.
//
// Peers may send steps up to 2^64 - 1. Additions to a step saturate at 2^64 - 1.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_WORKER_TABLE_H_
#define THINWIRE_SERVER_CORE_WORKER_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/macros.h"
#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/core/effects.h"
#include "server/core/read_form.h"

namespace thinwire {

// Returns step + n, or the largest step if the sum overflows.
Step StepsAfter(Step step, uint64_t n);

// The last push that finished a step, and the verdicts of pushes of the steps before. If one of
// these pushes arrives again, it receives the stored verdict.
struct JudgedPush {
  // The number of steps before `step` whose verdicts are kept: more than kMostInFlight.
  static constexpr uint64_t kEarlierCount = 32;

  Step step;
  Verdict verdict = Verdict::kAccept;
  // Two bits for each step before `step`, from the lowest bits on: 1 accept, 2 late, 3 refused; 0:
  // no push has finished the step.
  uint64_t earlier = 0;

  // Returns the verdict of the push of OF; nullopt if it is unknown or the push finished no step.
  std::optional<Verdict> VerdictOf(Step of) const;
  // Returns the record after a push of NEXT, a later step, has received VERDICT.
  JudgedPush Then(Step next, Verdict verdict) const;

  bool operator==(const JudgedPush&) const = default;
};

struct WaitingRead {
  Step step;
  ReadForm form;

  bool operator==(const WaitingRead&) const = default;
};

// One row of the table. All fields except `next` describe the newest incarnation of the worker.
struct WorkerRecord {
  Incarnation incarnation;  // 0: never joined
  bool expired = false;     // the lease ran out, and no message arrived since
  bool left = false;
  Step next;
  std::optional<Step> read;  // the largest step for which the worker sent a read
  std::optional<JudgedPush> last_push;
  std::optional<WaitingRead> waiting;
  // The last step that the answers so far let the worker compute; nullopt before the first answer.
  std::optional<Step> allowed;

  bool joined() const { return incarnation.value != 0 && !left; }
  bool live() const { return joined() && read.has_value() && !expired; }
  bool operator==(const WorkerRecord&) const = default;
};

class WorkerTable {
 public:
  explicit WorkerTable(uint32_t worker_count) : workers_(worker_count) {}

  // All methods with a WORKER argument REQUIRE: worker < worker_count.
  const WorkerRecord& of(WorkerId worker) const {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }
  const std::vector<WorkerRecord>& rows() const { return workers_; }
  Step frontier() const { return frontier_; }

  uint32_t live_count() const { return live_count_; }
  // Returns whether INCARNATION is the worker's newest incarnation and has not left.
  bool IsCurrent(WorkerId worker, Incarnation incarnation) const;
  // Returns the smallest `next` of the live workers, or nullopt if no worker is live.
  std::optional<Step> SmallestLiveNext() const;
  // Returns the largest `next` of all workers.
  Step LargestNext() const;
  // Returns the first step that no worker may have begun: no answer lets a joined worker compute
  // this step or a later one, unless the worker has finished it.
  Step FirstNotBegun() const;
  // Returns the live workers that have not finished the frontier's step, in ascending order.
  std::vector<WorkerId> UnfinishedWorkers() const;
  // Returns whether WORKER, live or not, may still push the frontier's step.
  bool MayPushFrontier(WorkerId worker) const;
  // Returns the workers with a waiting read, in ascending order.
  std::vector<WorkerId> Waiting() const;

  // Gives the worker's row to a newer incarnation and resets every field except `next`. An older or
  // equal incarnation changes nothing.
  void Join(WorkerId worker, Incarnation incarnation);
  // MarkHeard, Read, Finish, Expire and Leave REQUIRE: IsCurrent(worker, the sender's incarnation).

  // Records that a message from the worker arrived. An expired worker is no longer expired.
  void MarkHeard(WorkerId worker) {
    Change(worker, [](WorkerRecord& row) { row.expired = false; });
  }
  // Registers a waiting read. A read for a smaller step than an earlier read changes nothing; a
  // repeated read is answered again.
  void Read(WorkerId worker, const WaitingRead& read);
  // Records the verdict of a push that finished STEP.
  void Finish(WorkerId worker, Step step, Verdict verdict);
  void Expire(WorkerId worker) {
    Change(worker, [](WorkerRecord& row) { row.expired = true; });
  }
  void Leave(WorkerId worker);

  // REQUIRES: to >= frontier().
  void MoveFrontier(Step to) { frontier_ = to; }
  // Removes the waiting reads for steps up to LAST (inclusive) and returns them as answers, ordered
  // by worker number. An answer for step r lets its worker compute the steps up to r + IN_FLIGHT,
  // but none above MOST unless r is.
  std::vector<ReadAnswer> ReleaseReads(Step last, uint64_t in_flight, Step most);

  // Replaces the frontier and all rows. Errors: InvalidArgument if ROWS has not worker_count
  // elements, or if no sequence of calls leads to one of its rows; the table is then unchanged.
  absl::Status Restore(Step frontier, std::vector<WorkerRecord> rows);

 private:
  WorkerRecord& row(WorkerId worker) {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }

  // Calls CHANGE(row), which may change whether the worker is live.
  template <typename Function>
  void Change(WorkerId worker, Function change) {
    WorkerRecord& changed = row(worker);
    if (changed.live()) --live_count_;
    change(changed);
    if (changed.live()) ++live_count_;
  }

  std::vector<WorkerRecord> workers_;
  uint32_t live_count_ = 0;
  Step frontier_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_WORKER_TABLE_H_
