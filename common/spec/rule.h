// Rule is the consistency rule of a job. The modes are settings of this rule (docs/consistency.md).
//
//   mode        fold    a round closes when                        a read for step t is answered
//   sync        kRound  every live worker has finished the step    if t <= frontier
//   backup N+b  kRound  N pushes are accepted, or when sync would  if t <= frontier
//   ssp(s)      kPush   -                                          if t <= frontier + s
//   async       kPush   -                                          at once
//
// N is the number of accepted pushes that closes a round, b the number of backup workers, and s the
// slack: the largest number of steps by which a worker may be ahead of the frontier.
//
// A worker may compute a step before the read for it is answered (docs/consistency.md, "Steps in
// flight"): with the parameters of the answered read for step r, it may compute the steps up to
// r + in_flight, by push no step above frontier + s. By round, it pushes these steps only after
// their own reads are answered. Immutable.
#ifndef THINWIRE_COMMON_SPEC_RULE_H_
#define THINWIRE_COMMON_SPEC_RULE_H_

#include <cstdint>
#include <limits>
#include <ostream>
#include <string_view>

#include "common/text/problems.h"

namespace thinwire {

enum class Fold : uint8_t {
  kRound,  // the accepted gradients of a step make one update when the step's round closes
  kPush,   // every fold_every accepted gradients make one update
};

// The largest value of in_flight. A worker keeps the pushes of so many steps.
inline constexpr uint32_t kMostInFlight = 16;

inline constexpr uint64_t kUnboundedSlack = std::numeric_limits<uint64_t>::max();

// Use one of the four functions below to make a Rule.
struct Rule {
  Fold fold = Fold::kRound;
  uint32_t workers = 1;      // the number of workers of the job, with backup workers
  uint32_t max_workers = 1;  // the largest number of workers to which an operator may scale the job
  uint32_t quorum = 1;       // kRound: accepted pushes that close a round; equals workers in sync
  uint64_t slack = 0;        // steps ahead of the frontier: 0 with kRound, kUnboundedSlack in async
  uint32_t fold_every = 1;   // kPush: accepted gradients per update
  bool ordered_fold =
      false;  // sync: fold the gradients of a step in the order of the workers' numbers
  uint32_t in_flight = 0;  // kRound: at most 1

  static Rule Sync(uint32_t workers, bool ordered_fold = false) {
    return {.workers = workers,
            .max_workers = workers,
            .quorum = workers,
            .ordered_fold = ordered_fold};
  }
  static Rule Backup(uint32_t workers, uint32_t backup) {
    return {.workers = workers, .max_workers = workers, .quorum = workers - backup};
  }
  static Rule Ssp(uint32_t workers, uint64_t slack, uint32_t fold_every = 1) {
    return {.fold = Fold::kPush,
            .workers = workers,
            .max_workers = workers,
            .quorum = 0,
            .slack = slack,
            .fold_every = fold_every};
  }
  static Rule Async(uint32_t workers, uint32_t fold_every = 1) {
    return {.fold = Fold::kPush,
            .workers = workers,
            .max_workers = workers,
            .quorum = 0,
            .slack = kUnboundedSlack,
            .fold_every = fold_every};
  }

  // Returns the name of the mode: "sync", "backup", "ssp" or "async". A rule of mode backup without
  // backup workers is a sync rule.
  std::string_view mode() const;
  // Returns the largest number of gradients in one update.
  uint32_t MostFolded() const { return fold == Fold::kRound ? max_workers : fold_every; }

  Problems Validate() const;

  bool operator==(const Rule&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Rule& rule);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_SPEC_RULE_H_
