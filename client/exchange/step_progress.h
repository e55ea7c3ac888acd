// StepProgress: synchronizes the training thread with the client's event loop. The loop reports
// progress; the training thread waits for it. The first failure ends every wait, permanently.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/ids.h"
#include "common/partition.h"

namespace thinwire::client {

// Thread-safe.
class StepProgress {
 public:
  explicit StepProgress(const Partition& partition);

  // The event loop calls the five functions below.
  //
  // Records that the parameters of SHARD are requested and have not arrived. Idempotent.
  void ExpectShard(ShardId shard);
  // Records that the parameters of SHARD are in the replica.
  void ShardArrived(ShardId shard);
  // Records that every gradient of the current step is encoded.
  void StepEncoded();
  // Records that every push of the current step has its verdict. NEXT is the next step to run.
  void StepJudged(Step next);
  // Ends all waits with FAILURE. Only the first call has an effect. REQUIRES: FAILURE is not OK.
  void Fail(absl::Status failure);

  // The training thread calls the functions below. The waits return the failure, if there is one.
  void BeginStep();
  absl::Status WaitTensor(uint32_t tensor);
  absl::Status WaitAll();
  absl::Status WaitEncoded();
  absl::StatusOr<Step> WaitNext();
  absl::Status failure() const;

 private:
  // For each shard, the tensors of which the shard contains values.
  std::vector<std::vector<uint32_t>> tensors_of_shard_;

  mutable absl::Mutex mu_;
  std::vector<bool> missing_ ABSL_GUARDED_BY(mu_);                // true for awaited shards
  std::vector<uint32_t> missing_of_tensor_ ABSL_GUARDED_BY(mu_);  // missing shards of each tensor
  uint32_t missing_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool encoded_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Step> next_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_
