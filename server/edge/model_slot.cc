#include "server/edge/model_slot.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/partition.h"
#include "server/core/shard.h"
#include "server/edge/convert.h"

namespace thinwire {
namespace {

std::string Summary(const Partition& partition) {
  return absl::StrCat(partition.tensors().size(), " tensors, ", partition.value_count(),
                      " values, ", partition.shard_size(), " a shard, hash ",
                      absl::Hex(partition.hash()));
}

}  // namespace

ModelSlot::ModelSlot(ServerId self, uint32_t server_count, const ShardOptions& shard,
                     std::unique_ptr<const Optimizer> optimizer, Schedule schedule,
                     boost::asio::thread_pool& pool)
    : self_(self),
      server_count_(server_count),
      shard_(shard),
      optimizer_(std::move(optimizer)),
      schedule_(std::move(schedule)),
      pool_(pool) {}

absl::Status ModelSlot::Take(const JoinRequest& request) {
  absl::MutexLock lock(&mu_);
  if (model_ != nullptr) return Compare(request, *model_);
  absl::StatusOr<Partition> partition = PartitionOf(request, server_count_);
  if (!partition.ok()) return partition.status();
  ShardOptions shard = shard_;
  shard.planned_examples = request.planned_examples();
  planned_examples_ = request.planned_examples();
  model_ = std::make_shared<const HostedModel>(*std::move(partition), self_, shard, *optimizer_,
                                               schedule_, pool_);
  LOG(INFO) << "model: " << model_->partition().value_count() << " values in "
            << model_->partition().shard_count() << " shards, " << model_->hosts().size()
            << " of them here";
  return absl::OkStatus();
}

absl::Status ModelSlot::Compare(const JoinRequest& request, const HostedModel& model) const {
  const Partition& ours = model.partition();
  if (request.partition_hash() != ours.hash()) {
    const absl::StatusOr<Partition> theirs = PartitionOf(request, server_count_);
    if (!theirs.ok()) return theirs.status();
    return absl::FailedPreconditionError(absl::StrCat(
        "another model: the job's has ", Summary(ours), "; the worker's has ", Summary(*theirs)));
  }
  if (request.planned_examples() != planned_examples_) {
    LOG(WARNING) << "worker " << request.worker() << " plans " << request.planned_examples()
                 << " examples, the job's first worker " << planned_examples_
                 << ": the schedule stays with the first";
  }
  return absl::OkStatus();
}

std::shared_ptr<const HostedModel> ModelSlot::Get() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

}  // namespace thinwire
