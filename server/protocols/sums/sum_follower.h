// SumFollower performs the Sum calls of the lead (sum_lead.h), at another server.
#ifndef THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_FOLLOWER_H_
#define THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_FOLLOWER_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "proto/control.pb.h"
#include "server/protocols/sums/shard_sums.h"

namespace thinwire {

class SumFollower final : public ShardSums {
 public:
  using ShardSums::ShardSums;

  // Closes the last round and replies with this server's part of the next one, when it is known.
  void Sum(const SumRequest& request, std::function<void(absl::StatusOr<SumReply>)> done);
  // Ends the lead's call with STATUS, and all waits.
  void Stop(const absl::Status& status) override;

 private:
  struct HeldReply {
    std::optional<Step> after;
    std::function<void(absl::StatusOr<SumReply>)> done;
  };

  void Finished(const RoundPart& /*part*/) override { ReplyIfDue(); }
  void ReplyIfDue();

  std::optional<HeldReply> reply_;  // the lead's call
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_SUMS_SUM_FOLLOWER_H_
