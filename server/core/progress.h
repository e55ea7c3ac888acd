// Progress: who is live and how far. The table of a shard's workers, and its frontier.
//
//   joined ----read----> live ----expire----> silent ----any message, return----> live
//      ^                  |                     |
//      +-- a newer incarnation                  +--leave--> left (the incarnation is closed)
//
// `next` is the first step that a worker has not finished, whatever its incarnation. A push that
// was accepted, late or refused finishes its step; a read for t finishes every step below t.
// Neither `next` nor the frontier ever falls.
//
// Steps come from peers and may be as large as 2^64 - 1; sums of them stop there instead of going
// round.
//
// Lives on its shard's strand.
#ifndef THINWIRE_SERVER_CORE_PROGRESS_H_
#define THINWIRE_SERVER_CORE_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/macros.h"
#include "common/ids.h"
#include "server/core/effects.h"
#include "server/core/read_form.h"

namespace thinwire {

// step + n, at most the largest step there is.
Step StepsAfter(Step step, uint64_t n);

// The last push that finished a step, kept so that the same push gets the same verdict when it
// comes again.
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

// One row of the table. All but `next` is the newest incarnation's.
struct WorkerProgress {
  Incarnation incarnation;  // 0: never joined
  bool silent = false;      // its lease ran out and nothing was heard since
  bool left = false;
  Step next;
  std::optional<Step> read;  // the largest step it has read for
  std::optional<JudgedPush> last_push;
  std::optional<WaitingRead> waiting;

  bool joined() const { return incarnation.value != 0 && !left; }
  bool live() const { return joined() && read.has_value() && !silent; }
  bool operator==(const WorkerProgress&) const = default;
};

class Progress {
 public:
  explicit Progress(uint32_t worker_count) : workers_(worker_count) {}

  // REQUIRES, here and below: worker < worker_count.
  const WorkerProgress& of(WorkerId worker) const {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }
  Step frontier() const { return frontier_; }

  uint32_t live_count() const;
  // Whether INCARNATION is WORKER's newest and has not left.
  bool IsCurrent(WorkerId worker, Incarnation incarnation) const;
  // The smallest `next` of the live; nothing if nobody is live.
  std::optional<Step> SmallestLiveNext() const;
  // Of all workers.
  Step LargestNext() const;
  // The live workers that have not finished the frontier, rising.
  std::vector<WorkerId> HoldingFrontier() const;
  // Whether WORKER, live or not, may still push the frontier's step.
  bool MayPushFrontier(WorkerId worker) const;
  // Those with a waiting read, rising.
  std::vector<WorkerId> Waiting() const;

  // A newer incarnation takes the number over: it keeps `next` and nothing else. An older or equal
  // one changes nothing.
  void Join(WorkerId worker, Incarnation incarnation);
  // The rest REQUIRE IsCurrent(worker, its incarnation).

  // Something came from the worker: it is not silent.
  void Hear(WorkerId worker) { row(worker).silent = false; }
  // The worker wants READ.step. An older read than one that came before changes nothing; the same
  // one is answered again.
  void Read(WorkerId worker, const WaitingRead& read);
  // The worker's push of STEP was judged, which finished the step.
  void Finish(WorkerId worker, Step step, Verdict verdict);
  void Expire(WorkerId worker) { row(worker).silent = true; }
  void Leave(WorkerId worker);

  // REQUIRES: to >= frontier().
  void MoveFrontier(Step to) { frontier_ = to; }
  // Takes out the waiting reads for steps up to LAST, in the workers' order.
  std::vector<Answer> TakeReads(Step last);

 private:
  WorkerProgress& row(WorkerId worker) {
    ABSL_HARDENING_ASSERT(worker.value < workers_.size());
    return workers_[worker.value];
  }

  std::vector<WorkerProgress> workers_;
  Step frontier_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_PROGRESS_H_
