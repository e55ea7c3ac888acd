#include "client/core/residual_restore.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace thinwire::client {

ResidualOwner OwnerOf(const ClientOptions& options) {
  return {.job = options.job, .worker = options.worker};
}

absl::Status ResidualRestore::Open() {
  files_.clear();
  if (options_.state_dir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(StateFolder folder, StateFolder::Open(options_.state_dir, options_.worker));
  folder_ = std::make_unique<const StateFolder>(std::move(folder));
  ASSIGN_OR_RETURN(const std::vector<Step> steps, folder_->Steps());
  for (const Step step : steps) {
    const std::string path = folder_->PathOf(step);
    ASSIGN_OR_RETURN(const ResidualPoint point,
                     ReadResidualPoint(path, OwnerOf(options_), partition_));
    files_.push_back({.path = path, .point = point});
  }
  return absl::OkStatus();
}

absl::Status ResidualRestore::Restore(std::span<const JoinReply> replies, Step first,
                                      bool after_rollback, PushEncoder& encoder) {
  ResidualStart start = DecideResidualStart(folder_ == nullptr ? "" : folder_->path(), files_,
                                            replies, partition_, after_rollback);
  text_ = std::move(start.text);
  SavedResiduals saved;
  saved.shards.resize(partition_.shard_count());
  if (!start.path.empty()) {
    ASSIGN_OR_RETURN(saved, ReadResiduals(start.path, OwnerOf(options_), partition_));
  }
  // A shard that is not restored loses the residual in memory or, at the start of a process, the
  // residual in the file.
  std::vector<ShardResidualsView> present = ViewsOf(saved.shards);
  if (after_rollback) {
    ASSIGN_OR_RETURN(present, encoder.residuals());
  }
  dropped_count_ = 0;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    if (start.restored[s]) continue;
    if (!present[s].residual.empty() || !present[s].momentum.empty()) ++dropped_count_;
    saved.shards[s] = {};
  }
  if (dropped_count_ > 0) {
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", "the residuals of ", dropped_count_,
                    dropped_count_ == 1 ? " shard are" : " shards are", " dropped");
  }
  RETURN_IF_ERROR(encoder.Restore(std::move(saved)));
  return folder_ == nullptr ? absl::OkStatus() : folder_->RemoveAbove(first);
}

}  // namespace thinwire::client
