// HostedModel contains a model's partition and the shards of this server. ModelSlot stores the
// job's model. The first Join defines the model, and every later Join must contain the same model.
#ifndef THINWIRE_SERVER_SHARDS_HOSTED_MODEL_H_
#define THINWIRE_SERVER_SHARDS_HOSTED_MODEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/group_spec.h"
#include "common/spec/shared_tensors.h"
#include "proto/control.pb.h"
#include "server/core/shard.h"
#include "server/shards/frame_budget.h"
#include "server/shards/memory_plan.h"
#include "server/shards/server_shards.h"
#include "server/shards/shard_host.h"

namespace thinwire {

// Gather collects one result per shard. Thread-safe.
template <typename Result>
class Gather {
 public:
  // Calls DONE with all results when COUNT results are set.
  Gather(size_t count, std::function<void(std::vector<Result>)> done)
      : done_(std::move(done)), results_(count), missing_count_(count) {}

  // Sets result number I. Call once per number.
  void Set(size_t i, Result result) {
    results_[i] = std::move(result);
    if (missing_count_.fetch_sub(1) == 1) done_(std::move(results_));
  }

 private:
  const std::function<void(std::vector<Result>)> done_;
  std::vector<Result> results_;
  std::atomic<size_t> missing_count_;
};

// Immutable and thread-safe; the state of each shard changes on the shard's strand only.
class HostedModel {
 public:
  // OPTIONS apply to every shard, with two exceptions: each shard has its own value_count, and
  // shards of vectors do not use gTop-k selection.
  HostedModel(Partition partition, ServerId self, const ShardOptions& options,
              const ShardHost::Shared& shared);

  // Returns an upper bound of the memory of the model's shards on server SELF, in bytes.
  static uint64_t NeededBytes(const Partition& partition, ServerId self,
                              const ShardOptions& options, std::span<const GroupUpdate> groups);

  const Partition& partition() const { return partition_; }
  // Returns the shards of this server in ascending order of their numbers, the order in which
  // workers push them. May be empty.
  const std::vector<std::unique_ptr<ShardHost>>& hosts() const { return hosts_; }
  // Returns the ShardHost that runs SHARD. REQUIRES: SHARD is on this server.
  ShardHost& host(ShardId shard) const { return *by_shard_[shard.value]; }
  // Returns the ShardHost that runs SHARD, or null if SHARD is not on this server.
  ShardHost* Find(ShardId shard) const {
    return shard.value < by_shard_.size() ? by_shard_[shard.value] : nullptr;
  }

  // Return the progress of the shards after their last events (shard_host.h). The largest frontier;
  // the first step that WORKER has not finished on every shard; the largest such step of all
  // workers and shards. Each is 0 if the server has no shard.
  Step frontier() const;
  Step next(WorkerId worker) const;
  Step largest_next() const;
  // Returns whether every shard is open.
  bool open() const;

  // Sets the queue and the times of REPLY from all shards. Thread-safe.
  void FillIn(StatusReply& reply) const;

  // Submits EVENT_OF(shard) to every shard (ShardHost::Submit), then calls DONE with the effects in
  // the order of hosts(). DONE runs on the strand that finishes last, or within this call if the
  // server has no shard.
  void SubmitToEach(const std::function<Event(ShardId)>& event_of,
                    std::function<void(std::vector<Effects>)> done) const;
  // Submits EVENT to every shard.
  void SubmitToAll(const Event& event, std::function<void(std::vector<Effects>)> done) const {
    SubmitToEach([&event](ShardId) { return event; }, std::move(done));
  }

  // Blocks until all work that was posted to the shards earlier has returned. Later work never runs.
  void Finish() const;

  // Each shard asks for its first values, or sends its wait notices (ShardHost), later on its
  // strand.
  void AskForValues() const;
  void SendWaitNotices() const;

  // Calls DONE with the masters, or the averages if REQUEST asks for them, of the shard at position
  // INDEX of hosts(), or with no chunks if INDEX is past the last shard. Errors: FailedPrecondition
  // if the shard has no values yet.
  void Masters(const MastersRequest& request, size_t index,
               std::function<void(absl::StatusOr<std::vector<MastersChunk>>)> done) const;

  // Calls WORK(host, shard) for every shard on its strand, then DONE with the results in the order
  // of hosts(). DONE runs on the strand that finishes last, or within this call if the server has
  // no shard.
  template <typename Result, typename Work, typename Done>
  void ForAllShards(Work work, Done done) const;

 private:
  const Partition partition_;
  std::vector<std::unique_ptr<ShardHost>> hosts_;
  std::vector<ShardHost*> by_shard_;
  std::vector<std::unique_ptr<Executor>> strands_;  // last, because their tasks use the hosts
};

// Thread-safe.
class ModelSlot final : public ServerShards {
 public:
  // The model determines value_count and planned_examples, so OPTIONS need not set them. The model
  // with the workers of PLAN must fit into PLAN; the bytes that PLAN leaves for frames are added to
  // FRAMES, which must outlive this object. Every Join must place the tensors in GROUPS
  // (common/spec/place_tensors.h). SETTINGS decide whether shards may share a tensor.
  ModelSlot(ServerId self, uint32_t server_count, const ShardOptions& options,
            const MemoryPlan& plan, FrameBudget& frames, const ShardHost::Shared& shared,
            std::vector<GroupSpec> groups = {}, const SharedTensorSettings& settings = {})
      : self_(self),
        server_count_(server_count),
        options_(options),
        plan_(plan),
        frames_(frames),
        shared_(shared),
        groups_(std::move(groups)),
        settings_(settings) {}

  // Creates the model that REQUEST describes, or compares REQUEST with the existing model. Errors:
  // InvalidArgument for an invalid model and for a model that needs too much memory;
  // FailedPrecondition if the model or the number of servers differs.
  absl::Status MakeOrCompare(const JoinRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // The shards are restored from an earlier process. The first later Join states the planned
  // examples of the run, which was perhaps resumed with other epochs.
  void AwaitPlan() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the planned examples of REQUEST if it is the first Join after AwaitPlan(). Every shard
  // must then get a PlanEvent. REQUIRES: MakeOrCompare(REQUEST) returned OK.
  std::optional<uint64_t> NewPlan(const JoinRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the model, or null before the first Join.
  std::shared_ptr<const HostedModel> Get() const ABSL_LOCKS_EXCLUDED(mu_);

  bool has_model() const override { return Get() != nullptr; }
  const Partition& partition() const override { return Get()->partition(); }
  Step frontier() const override;
  std::optional<Step> LargestNext() const override;
  absl::Status Reserve(uint32_t workers) override ABSL_LOCKS_EXCLUDED(mu_);
  void ApplyToEach(const std::function<Event(ShardId)>& event_of,
                   std::function<void()> then) override;

 private:
  // Returns the bytes that the plan leaves for frames beside the model and the connections of
  // WORKERS workers.
  absl::StatusOr<int64_t> SharedFrameBytes(const Partition& partition, uint32_t workers) const;
  absl::Status Compare(const JoinRequest& request, const HostedModel& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ServerId self_;
  const uint32_t server_count_;
  const ShardOptions options_;
  const MemoryPlan plan_;
  FrameBudget& frames_;
  const ShardHost::Shared shared_;
  const std::vector<GroupSpec> groups_;
  const SharedTensorSettings settings_;

  mutable absl::Mutex mu_;
  std::shared_ptr<const HostedModel> model_ ABSL_GUARDED_BY(mu_);
  uint64_t planned_examples_ ABSL_GUARDED_BY(mu_) = 0;
  bool awaits_plan_ ABSL_GUARDED_BY(mu_) = false;
  int64_t frame_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // the bytes in frames_
};

template <typename Result, typename Work, typename Done>
void HostedModel::ForAllShards(Work work, Done done) const {
  if (hosts_.empty()) {
    done(std::vector<Result>());
    return;
  }
  const auto gather = std::make_shared<Gather<Result>>(hosts_.size(), std::move(done));
  for (size_t i = 0; i < hosts_.size(); ++i) {
    ShardHost& host = *hosts_[i];
    host.Post([gather, work, i, &host](Shard& shard) { gather->Set(i, work(host, shard)); });
  }
}

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SHARDS_HOSTED_MODEL_H_
