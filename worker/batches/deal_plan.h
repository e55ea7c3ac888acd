// DealPlan deals the examples of every epoch among the workers. It is a pure function of the deals
// (Deal in proto/control.proto): a deal names the members, among whom examples are dealt from its
// step on. The first deal begins at step 0 and has the members 0 to W-1.
//
// An epoch begins with a pool of all examples, in the order of the epoch's permutation. Member
// number i of m takes the positions i, i + m, i + 2m, ... of the pool, B of them per step:
//
//   pool of 10 examples, 3 members, B = 2      7 2 9 | 0 4 1 | 8 3 5 | 6
//   member 0   steps [7 0] [8 6]
//   member 1         [2 4] [3]
//   member 2         [9 1] [5]
//
// B is the number of batches in a step times the examples of a batch. A deal may change the number
// of batches, for all members or for each one. Members with different B take turns, one example
// each, until they have their B examples of the step:
//
//   B = 3, 1, 2      7 2 9 0 4 1 | 8 3 5 6
//   member 0   steps [7 0 1] [8 6]
//   member 1         [2] [3]
//   member 2         [9 4] [5]
//
// The epoch ends when the pool is empty. A deal within an epoch makes a new pool of
// the examples that the members have not taken in earlier steps, and of the examples that a
// departed worker has taken in the steps from its `next` on. In these steps a departed worker gets
// no examples any more: if it returns, it does not train on them a second time. If a departed
// worker has not finished examples of an earlier epoch, they are part of the new pool too.
//
// A deal that begins an epoch replaces the deals before it. Nobody is dealt examples in the steps
// before it any more.
#ifndef THINWIRE_WORKER_BATCHES_DEAL_PLAN_H_
#define THINWIRE_WORKER_BATCHES_DEAL_PLAN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "proto/control.pb.h"

namespace thinwire {

// An example, as a position in the permutation of an epoch.
struct DealtExample {
  uint64_t epoch = 0;
  uint32_t position = 0;

  auto operator<=>(const DealtExample&) const = default;
};

// ExamplePool is an ascending sequence of examples. It needs little memory, because it stores runs
// of adjacent positions. Immutable.
class ExamplePool {
 public:
  ExamplePool() = default;
  // The pool of all examples of an epoch.
  ExamplePool(uint64_t epoch, uint64_t example_count);

  uint64_t size() const { return size_; }
  // Returns example number I of the sequence. REQUIRES: I < size().
  DealtExample at(uint64_t i) const;
  // Returns the pool without its first COUNT examples, together with RETURNED. REQUIRES: COUNT <=
  // size(); no example is in both; RETURNED is ascending.
  ExamplePool Without(uint64_t count, const std::vector<DealtExample>& returned) const;

 private:
  struct Run {
    DealtExample first;
    uint64_t count = 0;
    uint64_t before = 0;  // the number of examples in earlier runs
  };

  void Add(DealtExample first, uint64_t count);

  std::vector<Run> runs_;
  uint64_t size_ = 0;
};

// Not thread-safe.
class DealPlan {
 public:
  // In a step before the first deal, each worker takes BATCH_COUNT batches of BATCH_SIZE examples.
  // The run ends after EPOCHS epochs. REQUIRES: all arguments are positive; example_count < 2^32.
  DealPlan(uint64_t example_count, uint32_t batch_size, uint32_t workers, uint32_t batch_count = 1,
           uint64_t epochs = std::numeric_limits<uint64_t>::max());

  // Adds the next deal, or one that begins an epoch and has a larger number. A deal after the end of
  // the run deals no unfinished examples, so that the work is bounded by the length of the run,
  // whatever the lead sends. REQUIRES: CheckDeal (proto/deal_check.h) accepts DEAL after the last
  // deal.
  void Add(const Deal& deal);
  // Removes all added deals, after the servers have gone back to an earlier step.
  void ForgetDeals();
  // Returns the number of the newest deal that was added and not removed.
  size_t deal_count() const { return replaced_count_ + deals_.size() - 1; }

  // Returns the epoch of a step, and the first step of an epoch, unless later deals change them. A
  // deal changes only the steps after its own: the epoch of its own step stays the same. An epoch
  // before a deal that begins one is said to begin with this deal.
  uint64_t epoch(Step step) const;
  Step EpochBegin(uint64_t epoch) const;

  // Returns the examples of WORKER in STEP. The batch is empty if the worker is not a member.
  std::vector<DealtExample> Batch(WorkerId worker, Step step) const;
  // Returns the members of the deal of STEP, ascending.
  const std::vector<WorkerId>& MembersAt(Step step) const { return DealtAt(step).members; }

 private:
  // The steps from the beginning of one deal to that of the next one.
  struct Dealt {
    uint64_t begin = 0;
    std::vector<WorkerId> members;  // ascending
    std::vector<uint64_t> sizes;    // examples that each member takes in a step
    uint64_t step_size = 0;         // the sum of the sizes
    // The examples of the epoch `full_epoch` - 1 that are left, dealt before `full_begin`; may be
    // empty.
    ExamplePool rest;
    // From this step on, every epoch has all examples.
    uint64_t full_begin = 0;
    uint64_t full_epoch = 0;
    uint64_t full_steps = 0;  // steps of an epoch with all examples
  };
  // The position of a step in its epoch.
  struct Place {
    uint64_t epoch = 0;
    ExamplePool pool;
    uint64_t step = 0;  // number of steps that were dealt from `pool` before
  };
  // In the steps from `next` to before `end`, a departed worker gets no examples.
  struct Absence {
    uint64_t next = 0;
    uint64_t end = 0;
  };

  // Returns DEALT with a step size, and with the steps of an epoch with all examples.
  Dealt Sized(Dealt dealt) const;
  // Returns the members and the sizes of DEAL.
  Dealt MembersOf(const Deal& deal) const;
  // Makes DEAL, which begins an epoch, the first one.
  void BeginWith(const Deal& deal);
  // Returns the deal in force at STEP; the first one for earlier steps.
  const Dealt& DealtAt(Step step) const;
  Place PlaceOf(const Dealt& dealt, Step step) const;
  bool IsAbsent(WorkerId worker, Step step) const;
  // Returns the examples that departed workers of DEAL have not finished, and records that the
  // workers are absent.
  std::vector<DealtExample> TakeBack(const Deal& deal);

  const uint64_t example_count_;
  const uint32_t batch_size_;
  const uint64_t epochs_;
  Dealt first_;  // before the first deal
  std::vector<Dealt> deals_;
  size_t replaced_count_ = 0;  // deals that the first element of deals_ replaces
  std::map<WorkerId, std::vector<Absence>> absences_;
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_BATCHES_DEAL_PLAN_H_
