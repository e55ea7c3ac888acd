// Rule: the one consistency rule; each mode is a row of it (docs/consistency.md).
//
//   mode        fold    a round closes when                 a read for step t is answered when
//   sync        kRound  every live worker has finished it   t <= frontier
//   backup N+b  kRound  N pushes are accepted, or as sync   t <= frontier
//   ssp(s)      kPush   -                                   t <= frontier + s
//   async       kPush   -                                   at once
#ifndef THINWIRE_SERVER_CORE_RULE_H_
#define THINWIRE_SERVER_CORE_RULE_H_

#include <cstdint>
#include <limits>
#include <ostream>

namespace thinwire {

enum class Fold {
  kRound,  // the accepted gradients of a step make one update when the step's round closes
  kPush,   // every fold_every accepted gradients make an update
};

inline constexpr uint64_t kUnboundedSlack = std::numeric_limits<uint64_t>::max();

// Immutable once made by one of the four rows.
struct Rule {
  Fold fold = Fold::kRound;
  uint32_t workers = 1;       // all of them, N + b in backup
  uint32_t quorum = 1;        // kRound: so many accepted pushes close a round; workers in sync
  uint64_t slack = 0;         // 0 with kRound, s in ssp, kUnboundedSlack in async
  uint32_t fold_every = 1;    // kPush
  bool ordered_fold = false;  // sync: fold in the workers' order

  static Rule Sync(uint32_t workers, bool ordered_fold = false) {
    return {.workers = workers, .quorum = workers, .ordered_fold = ordered_fold};
  }
  static Rule Backup(uint32_t workers, uint32_t backup) {
    return {.workers = workers, .quorum = workers - backup};
  }
  static Rule Ssp(uint32_t workers, uint64_t slack, uint32_t fold_every = 1) {
    return {.fold = Fold::kPush,
            .workers = workers,
            .quorum = 0,
            .slack = slack,
            .fold_every = fold_every};
  }
  static Rule Async(uint32_t workers, uint32_t fold_every = 1) {
    return {.fold = Fold::kPush,
            .workers = workers,
            .quorum = 0,
            .slack = kUnboundedSlack,
            .fold_every = fold_every};
  }

  // The most gradients that one update is made from.
  uint32_t MostFolded() const { return fold == Fold::kRound ? workers : fold_every; }

  bool operator==(const Rule&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Rule& rule);
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_RULE_H_
