// ModelSlot: the model of a job, empty until the first Join brings it; every later Join must bring
// the same.
#ifndef THINWIRE_SERVER_EDGE_MODEL_SLOT_H_
#define THINWIRE_SERVER_EDGE_MODEL_SLOT_H_

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "proto/control.pb.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/schedule.h"
#include "server/core/shard.h"
#include "server/edge/hosted_model.h"

namespace thinwire {

// Thread-safe.
class ModelSlot {
 public:
  // SHARD lacks what the model brings: value_count, planned_examples. POOL outlives the slot.
  ModelSlot(ServerId self, uint32_t server_count, const ShardOptions& shard,
            std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
            boost::asio::thread_pool& pool);

  // Makes the model, or compares REQUEST with it. Errors: InvalidArgument (no such model can be),
  // FailedPrecondition (another one, another count of servers).
  absl::Status Take(const JoinRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Null while the slot is empty.
  std::shared_ptr<const HostedModel> Get() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Compare(const JoinRequest& request, const HostedModel& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ServerId self_;
  const uint32_t server_count_;
  const ShardOptions shard_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const Schedule schedule_;
  boost::asio::thread_pool& pool_;

  mutable absl::Mutex mu_;
  std::shared_ptr<const HostedModel> model_ ABSL_GUARDED_BY(mu_);
  uint64_t planned_examples_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_MODEL_SLOT_H_
