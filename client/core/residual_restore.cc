#include "client/core/residual_restore.h"

#include <glog/logging.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace thinwire::client {

namespace {

absl::StatusOr<WorkerFolder> OpenFolder(const ClientOptions& options) {
  std::optional<uint32_t> member;
  if (!options.owned_tensors.empty()) member = options.member;
  return WorkerFolder::Open(options.state_dir, options.worker, member);
}

}  // namespace

ResidualOwner OwnerOf(const ClientOptions& options) {
  return {.job = options.job, .worker = options.worker};
}

absl::Status ResidualRestore::Open() {
  files_.clear();
  if (options_.state_dir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(WorkerFolder folder, OpenFolder(options_));
  folder_ = std::make_unique<WorkerFolder>(std::move(folder));
  ASSIGN_OR_RETURN(const std::vector<Step> steps, folder_->Steps());
  for (const Step step : steps) {
    const std::string path = folder_->PathOf(step);
    ASSIGN_OR_RETURN(const ResidualPoint point,
                     ReadResidualPoint(path, OwnerOf(options_), partition_));
    files_.push_back({.path = path, .point = point});
  }
  return absl::OkStatus();
}

LiveResiduals* ResidualRestore::MakeLive() {
  if (options_.state_dir.empty()) return nullptr;
  const auto folder = OpenFolder(options_);
  if (!folder.ok()) return nullptr;  // Join returns the error
  auto live =
      LiveResiduals::Create(folder->LivePath(), options_.worker, partition_, options_.memory);
  if (live.ok()) {
    live_ = *std::move(live);
  } else {
    LOG(WARNING) << "if this process is killed, its residuals are lost: "
                 << live.status().message();
  }
  return live_.get();
}

absl::Status ResidualRestore::Restore(std::span<const JoinReply> replies, Step first,
                                      bool after_rollback, PushEncoder& encoder) {
  const RunId run{replies[0].run()};
  const Generation generation{replies[0].generation()};
  if (folder_ != nullptr) {
    RETURN_IF_ERROR(folder_->Take({.run = run,
                                   .generation = generation,
                                   .incarnation = Incarnation{replies[0].incarnation()}}));
  }
  const std::vector<Step> next = NextSteps(replies, partition_.shard_count());
  LeftResiduals left;
  std::string left_text;
  if (!after_rollback) left = ReadLeft(run, left_text);
  // By round, servers of another generation have lost steps. By push, they go on alone.
  const bool may_fit =
      !left.shards.empty() && (!replies[0].by_round() || left.generation == generation);
  const auto fits = [&](size_t s) {
    return may_fit && !left.shards[s].lost && left.shards[s].step == next[s];
  };
  size_t fitting_count = 0;
  for (size_t s = 0; s < next.size(); ++s) fitting_count += fits(s);
  ResidualStart start =
      DecideResidualStart(folder_ == nullptr ? "" : folder_->path(), files_, replies, partition_,
                          after_rollback || fitting_count > 0);
  SavedResiduals saved;
  saved.shards.resize(partition_.shard_count());
  if (!start.path.empty()) {
    ASSIGN_OR_RETURN(saved, ReadResiduals(start.path, OwnerOf(options_), partition_));
  }
  size_t restored_count = 0;  // from what a killed process has left
  for (size_t s = 0; s < next.size(); ++s) {
    if (start.restored[s] || !fits(s)) continue;
    saved.shards[s] = std::move(left.shards[s].values);
    start.restored[s] = true;
    ++restored_count;
  }
  if (restored_count > 0) {
    left_text = absl::StrCat(folder_->LivePath(), ": restored for ", restored_count, " of ",
                             next.size(), " shards");
  }
  text_ = std::move(start.text);
  const auto append = [this](const std::string& text) {
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", text);
  };
  if (!left_text.empty()) append(left_text);
  // A shard that is not restored loses the residual in memory or, at the start of a process, the
  // residual in the file.
  std::vector<ShardResidualsView> present = ViewsOf(saved.shards);
  if (after_rollback) {
    ASSIGN_OR_RETURN(present, encoder.residuals());
  }
  dropped_count_ = 0;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    if (start.restored[s]) continue;
    const bool left_values =
        !left.shards.empty() && (left.shards[s].lost || HasValues(left.shards[s].values));
    if (left_values || HasValues(present[s])) ++dropped_count_;
    saved.shards[s] = {};
  }
  if (dropped_count_ > 0) {
    append(absl::StrCat("the residuals of ", dropped_count_,
                        dropped_count_ == 1 ? " shard are" : " shards are", " dropped"));
  }
  if (live_ != nullptr) live_->Begin(run, generation);
  RETURN_IF_ERROR(encoder.Restore(std::move(saved)));
  encoder.Keep(next);
  if (folder_ == nullptr) return absl::OkStatus();
  is_saved_ = start.path == folder_->PathOf(first) && restored_count == 0 && dropped_count_ == 0;
  PublishResiduals();
  return folder_->RemoveAbove(first);
}

void ResidualRestore::PublishResiduals() {
  if (live_ != nullptr) {
    const absl::Status published = live_->Publish();
    if (published.ok()) return;
    LOG(WARNING) << "if this process is killed, its residuals are lost: " << published.message();
  }
  // This process does not change the file that another has left. No later process may use it.
  std::error_code ignored;
  std::filesystem::remove(folder_->LivePath(), ignored);
}

LeftResiduals ResidualRestore::ReadLeft(RunId run, std::string& text) const {
  if (folder_ == nullptr) return {};
  const std::string path = folder_->LivePath();
  absl::StatusOr<LeftResiduals> left = ReadLeftResiduals(path, options_.worker, partition_);
  if (left.ok() && left->run == run) return *std::move(left);
  if (left.ok()) {
    text = absl::StrCat(path, ": from another run");
  } else if (!absl::IsNotFound(left.status())) {
    text = std::string(left.status().message());
  }
  return {};
}

}  // namespace thinwire::client
