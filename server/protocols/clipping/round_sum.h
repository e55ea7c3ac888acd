// RoundSum adds the squared norms of the parts of an averaged gradient, round by round. The members
// are the shards of a server, or the servers of a job.
//
//   members    0: round 7, norm^2 4    1: round 7, norm^2 5    ->  round 7, norm^2 9
//   members    0: round 8, norm^2 4    1: round 9              ->  round 8, norm^2 4
//
// A member that is ahead of the others has closed their round without a gradient, because it would
// wait otherwise (Shard::full). Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_CLIPPING_ROUND_SUM_H_
#define THINWIRE_SERVER_PROTOCOLS_CLIPPING_ROUND_SUM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "server/core/effects.h"

namespace thinwire {

// Returns the factor that limits a gradient to the norm LIMIT, at most 1.
double ClipFactor(double limit, double squared_norm);

// Returns the newest round that a shard has finished in an event with EFFECTS, or nullopt if there
// is none.
std::optional<FullRound> PartOf(const Effects& effects);

class RoundSum {
 public:
  // MEMBERS are the numbers of the members. REQUIRES: there is one at least.
  template <typename Id>
  explicit RoundSum(std::span<const Id> members) {
    for (const Id& member : members) parts_[member.value];
  }

  // MEMBER has finished all rounds up to that of PART. Returns the sum of the next round that all
  // members have finished, in the order of their numbers, or nullopt if there is none. REQUIRES:
  // MEMBER is one of the members.
  std::optional<FullRound> Add(uint32_t member, const FullRound& part);

  // Returns the newest result of Add.
  const std::optional<FullRound>& newest() const { return newest_; }

 private:
  std::map<uint32_t, std::optional<FullRound>> parts_;  // the newest of each member
  std::optional<FullRound> newest_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CLIPPING_ROUND_SUM_H_
