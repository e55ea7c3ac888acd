#include "client/parts/state_saver.h"

#include <glog/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/encode/push_encoder.h"
#include "client/exchange/status_report.h"
#include "common/base/status_macros.h"

namespace thinwire::client {

StateSaver::StateSaver(CoreThread& thread)
    : thread_(thread),
      writer_(thread.options.state_dir.empty() ? nullptr : thread.threads.Make()) {}

StateSaver::~StateSaver() {
  if (writer_ != nullptr) writer_->Finish();
}

absl::Status StateSaver::Save(const WriteBeside& beside) {
  if (writer_ == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<ShardResidualsView> residuals, CurrentResiduals());
  absl::Status written;
  writer_->Run([&] {
    written = Write({thread_.core->joined_run().run, thread_.next}, residuals, beside);
  });
  return written;
}

absl::Status StateSaver::StartSave(WriteBeside beside) {
  if (writer_ == nullptr) return absl::OkStatus();
  if (writing_) {
    return absl::UnavailableError(
        absl::StrCat(folder()->PathOf(thread_.next),
                     ": not saved, because an earlier state is still being written"));
  }
  ASSIGN_OR_RETURN(const std::vector<ShardResidualsView> residuals, CurrentResiduals());
  const auto copy = std::make_shared<SavedResiduals>();
  copy->point = {thread_.core->joined_run().run, thread_.next};
  for (const ShardResidualsView& shard : residuals) {
    copy->shards.push_back({.residual = {shard.residual.begin(), shard.residual.end()},
                            .momentum = {shard.momentum.begin(), shard.momentum.end()},
                            .late_examples = shard.late_examples});
  }
  writing_ = true;
  writer_->Post([this, copy, beside = std::move(beside)] {
    const absl::Status written = Write(copy->point, ViewsOf(copy->shards), beside);
    if (!written.ok()) {
      if (const auto more = failure_lines_.Next(thread_.threads.Now())) {
        LOG(ERROR) << "state not saved: " << written.message() << *more;
      }
    }
    writing_ = false;
  });
  return absl::OkStatus();
}

void StateSaver::WaitForWrite() {
  if (writer_ != nullptr) writer_->Run([] {});
}

bool StateSaver::IsDue() const {
  return writer_ != nullptr && thread_.core->parts().job_news.checkpoint_step() == thread_.next;
}

const WorkerFolder* StateSaver::folder() const { return thread_.core->restored().folder(); }

bool StateSaver::is_saved() const { return thread_.core->restored().is_saved(); }

const std::string& StateSaver::restored() const { return thread_.core->restored().text(); }

absl::StatusOr<std::vector<ShardResidualsView>> StateSaver::CurrentResiduals() {
  ClientCore& core = *thread_.core;
  if (!core.joined()) return absl::FailedPreconditionError("no server is joined");
  RETURN_IF_ERROR(thread_.CheckStepIsComplete());
  if (thread_.ReturnsPending()) RETURN_IF_ERROR(thread_.progress.WaitAll());
  // At this point the servers have accepted or rejected every push, and the residuals contain all
  // values that gTop-k did not select. The event loop does not use the encoder again before the
  // next step begins.
  absl::StatusOr<std::vector<ShardResidualsView>> residuals;
  thread_.loop->Run([&] { residuals = core.parts().encoder.residuals(); });
  return residuals;
}

absl::Status StateSaver::Write(const ResidualPoint& point,
                               std::span<const ShardResidualsView> residuals,
                               const WriteBeside& beside) const {
  RETURN_IF_ERROR(folder()->CheckHeld());
  const std::string path = folder()->PathOf(point.step);
  if (beside != nullptr) {
    RETURN_IF_ERROR(beside(path));
    // The process may have been suspended meanwhile.
    RETURN_IF_ERROR(folder()->CheckHeld());
  }
  RETURN_IF_ERROR(
      WriteResiduals(path, OwnerOf(thread_.options), thread_.partition, point, residuals));
  return folder()->RemoveOld();
}

}  // namespace thinwire::client
