// WorkerTable is the table of a shard's workers and its frontier: which workers are live, and how
// far each one is.
//
//   joined ----read----> live ----expire----> expired ----any message, return----> live
//      ^                  |                     |
//      +-- a newer incarnation                  +--leave--> left (the incarnation is closed)
//
// `next` is the first step that a worker has not finished, in any incarnation. A push that was
// accepted, late or refused finishes its step; a read for step t finishes every step below t.
// Neither `next` nor the frontier ever decreases.
//
// Peers may send steps up to 2^64 - 1. Sums with steps saturate there.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_WORKER_TABLE_H_
#define THINWIRE_SERVER_CORE_WORKER_TABLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/macros.h"
#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/read_form.h"

namespace thinwire {

// Returns step + n, or the largest step if the sum overflows.
Step StepsAfter(Step step, uint64_t n);

// The last push that finished a step. If it arrives again it gets the same verdict.
struct JudgedPush {
  Step step;
  Verdict verdict = Verdict::kAccept;

  bool operator==(const JudgedPush&) const = default;
};

struct WaitingRead {
  Step step;
  ReadForm form;

  bool operator==(const WaitingRead&) const = default;
};

// One row of the table. All fields except `next` belong to the newest incarnation.
struct WorkerRow {
  Incarnation incarnation;  // 0: never joined
  bool expired = false;     // the lease ran out, and no message arrived since
  bool left = false;
  Step next;
  std::optional<Step> read;  // the largest step of its reads
  std::optional<JudgedPush> last_push;
  std::optional<WaitingRead> waiting;

  bool joined() const { return incarnation.value != 0 && !left; }
  bool live() const { return joined() && read.has_value() && !expired; }
  bool operator==(const WorkerRow&) const = default;
};

class WorkerTable {
 public:
  explicit WorkerTable(uint32_t worker_count) : workers_(worker_count) {}

  // REQUIRES, here and below: worker < worker_count.
  const WorkerRow& of(WorkerId worker) const {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }
  Step frontier() const { return frontier_; }

  uint32_t live_count() const;
  // Returns whether INCARNATION is the worker's newest and has not left.
  bool IsCurrent(WorkerId worker, Incarnation incarnation) const;
  // Returns the smallest `next` of the live workers, or nullopt if no worker is live.
  std::optional<Step> SmallestLiveNext() const;
  // Returns the largest `next` of all workers.
  Step LargestNext() const;
  // Returns the live workers that have not finished the frontier, in rising order.
  std::vector<WorkerId> UnfinishedWorkers() const;
  // Returns whether WORKER, live or not, may still push the frontier's step.
  bool MayPushFrontier(WorkerId worker) const;
  // Returns the workers with a waiting read, in rising order.
  std::vector<WorkerId> Waiting() const;

  // Lets a newer incarnation take over the worker's row, of which only `next` remains. An older or
  // equal incarnation changes nothing.
  void Join(WorkerId worker, Incarnation incarnation);
  // The methods below up to Leave REQUIRE that the sender's incarnation IsCurrent().

  // Records a message from the worker, which ends its expiry.
  void MarkHeard(WorkerId worker) { row(worker).expired = false; }
  // Registers a waiting read. A read for a smaller step than an earlier one changes nothing; a
  // repeated read is answered again.
  void Read(WorkerId worker, const WaitingRead& read);
  // Records the verdict of a push that finished STEP.
  void Finish(WorkerId worker, Step step, Verdict verdict);
  void Expire(WorkerId worker) { row(worker).expired = true; }
  void Leave(WorkerId worker);

  // REQUIRES: to >= frontier().
  void MoveFrontier(Step to) { frontier_ = to; }
  // Removes the waiting reads for steps up to LAST and returns them as answers, in the workers'
  // order.
  std::vector<ReadAnswer> ReleaseReads(Step last);

 private:
  WorkerRow& row(WorkerId worker) {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }

  std::vector<WorkerRow> workers_;
  Step frontier_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_WORKER_TABLE_H_
