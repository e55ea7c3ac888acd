#include "cli/train/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"

namespace thinwire {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(10);

// Returns the smallest step of the workers that train.
uint64_t LeastStep(const RunRecord& record) {
  uint64_t least = record.steps();
  for (const WorkerRow& row : record.workers()) {
    if (row.state == WorkerRow::State::kTraining) least = std::min(least, row.step);
  }
  return least;
}

std::string StartText(const RunRecord& record) {
  const uint32_t starting = record.CountOf(WorkerRow::State::kStarting);
  std::string text = absl::StrCat("starting: ", record.workers().size() - starting, " of ",
                                  record.workers().size(), " workers have joined");
  if (!record.waiting().empty()) absl::StrAppend(&text, "  ", record.waiting());
  return text;
}

}  // namespace

std::string Progress::Line(const RunRecord& record, std::optional<double> staleness, absl::Time now,
                           size_t columns) {
  const auto loss = record.train_loss();
  const double rate = Rate(record.examples(), now);
  if (!loss) return StartText(record);
  const uint64_t step = by_round_ ? record.steps() : LeastStep(record);
  std::string line = absl::StrCat("step ", step);
  if (step != record.steps()) absl::StrAppend(&line, "-", record.steps());
  if (record.planned_steps() > 0) absl::StrAppend(&line, "/", record.planned_steps());
  const uint32_t lost = record.CountOf(WorkerRow::State::kLost);
  if (lost > 0) absl::StrAppend(&line, "  ", lost, lost == 1 ? " worker lost" : " workers lost");
  if (!record.diverged().empty()) absl::StrAppend(&line, "  diverged: ", record.diverged());
  if (!record.waiting().empty()) absl::StrAppend(&line, "  ", record.waiting());

  const auto append = [&](const std::string& figure) {
    if (line.size() + 2 + figure.size() <= columns) absl::StrAppend(&line, "  ", figure);
  };
  if (const auto left = TimeLeft(step, record.planned_steps(), now))
    append(absl::StrCat(html::TimeLeftText(*left), " left"));
  append(absl::StrFormat("train loss %.3f", *loss));
  if (const auto accuracy = record.test_accuracy()) {
    append(absl::StrFormat("accuracy %.3f", *accuracy));
  } else if (const auto test_loss = record.test_loss()) {
    append(absl::StrFormat("test loss %.3f", *test_loss));
  }
  append(absl::StrFormat("%.0f examples/s", rate));
  const WorkerCounters totals = record.Totals();
  const std::string saving = SavingText(totals.push_bytes_raw(), totals.push_bytes_encoded());
  append(absl::StrCat("pushed ", BytesText(totals.push_bytes_encoded()),
                      saving.empty() ? "" : absl::StrCat(" (", saving, ")")));
  if (staleness) append(absl::StrFormat("staleness %.1f", *staleness));
  return line;
}

std::optional<absl::Duration> Progress::TimeLeft(uint64_t step, uint64_t planned_steps,
                                                 absl::Time now) {
  if (!first_) first_ = {now, step};
  if (step <= first_->second || step > planned_steps) return std::nullopt;
  return (now - first_->first) * static_cast<double>(planned_steps - step) /
         static_cast<double>(step - first_->second);
}

double Progress::Rate(uint64_t examples, absl::Time now) {
  examples_.emplace_back(now, examples);
  while (examples_.size() > 2 && now - examples_.front().first > kRateWindow) examples_.pop_front();
  const double seconds = absl::ToDoubleSeconds(now - examples_.front().first);
  if (seconds <= 0) return 0;
  return static_cast<double>(examples - std::min(examples, examples_.front().second)) / seconds;
}

std::string BytesText(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return absl::StrFormat("%.2f GB", value / 1e9);
  if (bytes >= 1'000'000) return absl::StrFormat("%.1f MB", value / 1e6);
  return absl::StrFormat("%.1f kB", value / 1e3);
}

std::string SavingText(uint64_t raw, uint64_t encoded) {
  if (encoded == 0 || raw < encoded + encoded / 20) return "";
  return absl::StrFormat("%.1fx smaller than fp32",
                         static_cast<double>(raw) / static_cast<double>(encoded));
}

}  // namespace thinwire
