#include "cli/train/run_display.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/process/command_lines.h"
#include "common/base/ids.h"
#include "common/spec/rule.h"
#include "config/parts/consistency.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kRecordsInterval = absl::Seconds(1);

}  // namespace

RunDisplay::RunDisplay(const TrainSetting& setting, Console& console, Clock& clock)
    : setting_(setting),
      console_(console),
      clock_(clock),
      progress_(RuleOf(setting.config.consistency()).fold == Fold::kRound),
      next_progress_(clock.Now() + console.interval()),
      next_records_(setting.admin == nullptr && setting.summary == nullptr ? absl::InfiniteFuture()
                                                                           : clock.Now()) {}

void RunDisplay::Update(const RunRecord& record, ServerCalls* calls, bool workers_run) {
  const absl::Time now = clock_.Now();
  if (now >= next_progress_) {
    next_progress_ = now + console_.interval();
    if (calls != nullptr && workers_run) ShowProgress(record, *calls);
  }
  if (now >= next_records_) {
    next_records_ = now + kRecordsInterval;
    UpdateRecords(record, calls);
  }
}

absl::Time RunDisplay::next() const { return std::min(next_progress_, next_records_); }

void RunDisplay::ShowTest(const RunRecord& record, const WorkerEvent& event) {
  const WorkerEvent::Epoch& epoch = event.epoch();
  if (setting_.summary != nullptr) setting_.summary->AddTest(record, epoch);
  const bool has_accuracy = epoch.has_test_accuracy();
  console_.Note(absl::StrFormat("epoch %u: train loss %.4f, test %s %.4f (%s)", epoch.epoch(),
                                epoch.train_loss(), has_accuracy ? "accuracy" : "loss",
                                has_accuracy ? epoch.test_accuracy() : epoch.test_loss(),
                                NameOf(WorkerId{event.worker()})));
}

void RunDisplay::WriteSummary(const RunRecord& record,
                              const std::map<uint64_t, uint64_t>& staleness) {
  if (setting_.summary == nullptr || summary_failed_) return;
  setting_.summary->Update(record, staleness);
  const absl::Status flushed = setting_.summary->Flush();
  summary_failed_ = !flushed.ok();
  if (summary_failed_) {
    console_.Warning(absl::StrCat("TensorBoard: no figures from now on: ", flushed.message()));
  }
}

void RunDisplay::ShowProgress(const RunRecord& record, ServerCalls& calls) {
  std::optional<double> staleness;
  if (const auto latest = calls.latest(); !latest.empty())
    staleness = TotalsOf(latest).mean_staleness();
  console_.Progress(progress_.Line(record, staleness, clock_.Now(), console_.progress_columns()));
  calls.AskStatus();
}

void RunDisplay::UpdateRecords(const RunRecord& record, ServerCalls* calls) {
  const std::vector<StatusReply> latest =
      calls == nullptr ? std::vector<StatusReply>() : calls->latest();
  if (setting_.admin != nullptr) setting_.admin->Update(record, latest);
  WriteSummary(record, TotalsOf(latest).staleness);
  if (calls != nullptr) calls->AskStatus();
}

}  // namespace thinwire
