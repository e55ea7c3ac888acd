// Rendezvous: where the training thread and the client's loop meet. The loop says what has come
// about, the training thread waits for it; the first failure ends every wait, for good.
#ifndef THINWIRE_CLIENT_RENDEZVOUS_H_
#define THINWIRE_CLIENT_RENDEZVOUS_H_

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
class Rendezvous {
 public:
  explicit Rendezvous(const Partition& partition);

  // The loop's side. The parameters of SHARD are to come, or have come.
  void Expect(ShardId shard);
  void Arrive(ShardId shard);
  // Every gradient of the step at hand is encoded.
  void Encoded();
  // Every push of it has its verdict.
  void Judged(Step next);
  // The first one stays; REQUIRES: not OK.
  void Fail(absl::Status failure);

  // The training thread's side. Each wait ends with the failure, if there is one.
  void BeginStep();
  absl::Status WaitTensor(uint32_t tensor);
  absl::Status WaitAll();
  absl::Status WaitEncoded();
  absl::StatusOr<Step> WaitNext();
  absl::Status failure() const;

 private:
  // The tensors that have values in each shard.
  std::vector<std::vector<uint32_t>> tensors_of_;

  mutable absl::Mutex mu_;
  std::vector<bool> missing_ ABSL_GUARDED_BY(mu_);                // per shard
  std::vector<uint32_t> missing_of_tensor_ ABSL_GUARDED_BY(mu_);  // shards
  uint32_t missing_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool encoded_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Step> next_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_RENDEZVOUS_H_
