// RoundSum adds the sums of squares of the parts of a round, round by round. The members are the
// shards of a server, or the servers of a job.
//
//   members    0: round 7, sum 4    1: round 7, sum 5    ->  round 7, sum 9
//   members    0: round 8, sum 4    1: round 9           ->  round 8, sum 4
//
// A member that is ahead of the others has closed their round without a gradient, because it would
// wait otherwise (Shard::full). Not thread-safe.
#ifndef THINWIRE_SERVER_PROTOCOLS_SUMS_ROUND_SUM_H_
#define THINWIRE_SERVER_PROTOCOLS_SUMS_ROUND_SUM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/core/optimizer/square_sums.h"

namespace thinwire {

// Sums over the whole model have the number 0, those over a tensor the number of the tensor.
using NumberedSums = std::map<uint32_t, SquareSums>;

// The sums of one round, over all members or over a part of them.
struct RoundPart {
  Step step;
  NumberedSums sums;  // empty without a gradient

  bool operator==(const RoundPart&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const RoundPart& part);
};

using SumMessages = google::protobuf::RepeatedPtrField<SquareSum>;

// Returns the sums in MESSAGES. Errors: InvalidArgument for a sum that is not finite or below 0.
absl::StatusOr<NumberedSums> SumsOf(const SumMessages& messages);
void SetSums(const NumberedSums& sums, SumMessages& messages);

class RoundSum {
 public:
  // MEMBERS are the numbers of the members. REQUIRES: there is one at least.
  template <typename Id>
  explicit RoundSum(std::span<const Id> members) {
    for (const Id& member : members) parts_[member.value];
  }

  // MEMBER has finished all rounds up to that of PART. Returns the sum of the next round that all
  // members have finished, added in the order of their numbers, or nullopt if there is none.
  // REQUIRES: MEMBER is one of the members.
  std::optional<RoundPart> Add(uint32_t member, const RoundPart& part);

  // Returns the newest result of Add.
  const std::optional<RoundPart>& newest() const { return newest_; }

 private:
  std::map<uint32_t, std::optional<RoundPart>> parts_;  // the newest of each member
  std::optional<RoundPart> newest_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_SUMS_ROUND_SUM_H_
