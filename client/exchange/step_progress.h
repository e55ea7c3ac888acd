// StepProgress: the StepListener of a training thread, which waits until the client's event loop
// reports an event. The first failure ends every wait, permanently. A rollback of the servers is a failure
// that Restart ends.
//
// After Stop, the waits for parameters, which may depend on other workers, end at once. The waits
// for the pushes of the current step depend on the servers only and end after the drain time, so
// that a stopped worker normally completes its step. After Drain, the waits for parameters end
// after the drain time too, so that the worker can run one more step.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/exchange/step_listener.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/clock.h"

namespace thinwire::client {

// Thread-safe.
class StepProgress final : public StepListener {
 public:
  // DRAIN: the longest time of waits after Stop. CLOCK must outlive this object.
  StepProgress(const Partition& partition, absl::Duration drain, Clock& clock);

  void OnShardExpected(ShardId shard) override;
  bool OnShardChanging(ShardId shard) override;
  void OnShardArrived(ShardId shard) override;
  void OnShardEncoded(ShardId shard) override;
  void OnUnjudged(size_t count) override;
  void OnStepEncoded() override;
  void OnNextStep(Step next) override;
  // Ends all waits with FAILURE. Has no effect after another OnFailure or OnRollback.
  void OnFailure(absl::Status failure) override;
  // Ends all waits with Aborted. Has no effect after OnFailure or another OnRollback.
  void OnRollback(Generation generation) override;

  // Ends all waits that would block, now and in the future, with Cancelled: WaitTensor and WaitAll
  // at once, WaitEncoded and WaitNext when the drain time has passed since the first call of Stop.
  // Any thread may call Stop.
  void Stop();
  // From now on, every wait calls GOES_ON about every 50 ms while it blocks, and ends with Cancelled
  // when GOES_ON returns false. REQUIRES: called before the first wait.
  void SetWaitCheck(std::function<bool()> goes_on) { goes_on_ = std::move(goes_on); }
  // Returns the end of the drain time; InfiniteFuture before Stop. Any thread may call this
  // function.
  absl::Time drain_end() const;

  // The training thread calls the functions below. The waits return the failure, if there is one.
  //
  // From now on, WaitTensor and WaitAll also last until the end of the drain time.
  void Drain();
  void BeginStep();
  absl::Status WaitTensor(uint32_t tensor);
  absl::Status WaitAll();
  // Blocks until the parameters of SHARDS have arrived. After Stop, lasts as long as the waits for
  // pushes.
  absl::Status WaitShards(std::span<const ShardId> shards);
  // Blocks until WaitShards would not block, or Stop is called. Returns true if WaitShards would
  // block. After Drain, returns false at once.
  bool WaitShardsOrStop(std::span<const ShardId> shards);
  absl::Status WaitEncoded();
  absl::StatusOr<Step> WaitNext();
  // Blocks until every push has its verdict.
  absl::Status WaitJudged();
  // Returns whether every push has its verdict.
  bool judged() const;
  // Blocks until WaitNext would not block, or Stop is called. Returns true if WaitNext would block.
  // After Drain, returns false at once.
  bool WaitNextOrStop();
  absl::Status failure() const;
  // Returns the generation of the rollback that has ended the waits; nullopt if no rollback did.
  std::optional<Generation> rollback() const;
  // Forgets the failure and everything that the event loop has recorded, as in a new object. A Stop
  // remains in effect. REQUIRES: the exchange has stopped.
  void Restart();

 private:
  // Marks SHARD as missing.
  void Expect(ShardId shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Blocks until ENDED returns true, until DEADLINE, or until the wait check returns false.
  void Await(absl::FunctionRef<bool()> ended, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Blocks until READY returns true, a failure or Stop. Returns true if neither READY nor a failure
  // has ended the wait. After Drain, returns false at once.
  bool WaitOrStop(absl::FunctionRef<bool()> ready);
  // Returns whether the parameters of all SHARDS have arrived.
  bool HaveArrived(std::span<const ShardId> shards) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Blocks until READY returns true, a failure, or the end of the wait after Stop. FOR_PUSHES: the
  // wait ends at the end of the drain time, also before Drain.
  absl::Status Wait(absl::FunctionRef<bool()> ready, bool for_pushes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration drain_;
  Clock& clock_;
  std::function<bool()> goes_on_;  // may be null
  // For each shard, the tensors of which the shard contains values, and the reverse.
  std::vector<std::vector<uint32_t>> tensors_of_shard_;
  std::vector<std::vector<ShardId>> shards_of_tensor_;

  mutable absl::Mutex mu_;
  // For each shard, true if its parameters for the next step have not arrived.
  std::vector<bool> missing_ ABSL_GUARDED_BY(mu_);
  // For each shard, true from the end of a wait for its parameters until its gradient is encoded.
  std::vector<bool> used_ ABSL_GUARDED_BY(mu_);
  // For each tensor, the number of its missing shards.
  std::vector<uint32_t> missing_of_tensor_ ABSL_GUARDED_BY(mu_);
  uint32_t missing_count_ ABSL_GUARDED_BY(mu_) = 0;
  size_t unjudged_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool encoded_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Step> next_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  std::optional<Generation> rollback_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Time> drain_end_ ABSL_GUARDED_BY(mu_);  // set by Stop
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_PROGRESS_H_
