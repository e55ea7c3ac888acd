#include "server/edge/hosted_model.h"

#include <glog/logging.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/edge/convert.h"

namespace thinwire {
namespace {

std::string Summary(const Partition& partition) {
  return absl::StrCat(partition.tensors().size(), " tensors, ", partition.value_count(),
                      " values, shards of ", partition.shard_size(), ", hash ",
                      absl::Hex(partition.hash()));
}

}  // namespace

HostedModel::HostedModel(Partition partition, ServerId self, ShardOptions options,
                         const ShardHost::Shared& shared)
    : partition_(std::move(partition)), by_shard_(partition_.shard_count()) {
  const std::optional<double> density = options.sparse_updates.selection_density;
  for (ShardId shard : partition_.ShardsOf(self)) {
    options.value_count = partition_.value_count(shard);
    options.sparse_updates.selection_density =
        partition_.HoldsVectors(shard) ? std::nullopt : density;
    hosts_.push_back(std::make_unique<ShardHost>(shard, options, shared));
    by_shard_[shard.value] = hosts_.back().get();
  }
}

absl::Status ModelSlot::MakeOrCompare(const JoinRequest& request) {
  absl::MutexLock lock(&mu_);
  if (model_ != nullptr) return Compare(request, *model_);
  ASSIGN_OR_RETURN(Partition partition, PartitionOf(request, server_count_));
  ShardOptions options = options_;
  options.planned_examples = request.planned_examples();
  planned_examples_ = request.planned_examples();
  model_ = std::make_shared<const HostedModel>(std::move(partition), self_, options, shared_);
  LOG(INFO) << "model: " << model_->partition().value_count() << " values in "
            << model_->partition().shard_count() << " shards, " << model_->hosts().size()
            << " of them on this server";
  return absl::OkStatus();
}

absl::Status ModelSlot::Compare(const JoinRequest& request, const HostedModel& model) const {
  const Partition& ours = model.partition();
  if (request.partition_hash() != ours.hash()) {
    ASSIGN_OR_RETURN(const Partition theirs, PartitionOf(request, server_count_));
    return absl::FailedPreconditionError(absl::StrCat("worker ", request.worker(),
                                                      ": another model (expected ", Summary(ours),
                                                      ", got ", Summary(theirs), ")"));
  }
  if (request.planned_examples() != planned_examples_) {
    LOG(WARNING) << "worker " << request.worker()
                 << ": planned_examples differs from the first worker's, which the schedule uses "
                    "(expected "
                 << planned_examples_ << ", got " << request.planned_examples() << ")";
  }
  return absl::OkStatus();
}

std::shared_ptr<const HostedModel> ModelSlot::Get() const {
  absl::MutexLock lock(&mu_);
  return model_;
}

}  // namespace thinwire
