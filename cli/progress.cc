#include "cli/progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(10);

// Returns the step of the workers, such as "41", or their range of steps, such as "35-41".
std::string StepsText(const RunRecord& record, bool by_round) {
  uint64_t least = record.steps();
  if (by_round) return absl::StrCat(least);
  for (const WorkerRow& row : record.workers()) {
    if (row.state == WorkerRow::State::kTraining) least = std::min(least, row.step);
  }
  if (least == record.steps()) return absl::StrCat(least);
  return absl::StrCat(least, "-", record.steps());
}

std::string StartText(const RunRecord& record) {
  const uint32_t starting = record.CountOf(WorkerRow::State::kStarting);
  std::string text = absl::StrCat("starting: ", record.workers().size() - starting, " of ",
                                  record.workers().size(), " workers have joined");
  if (!record.waiting().empty()) absl::StrAppend(&text, "  ", record.waiting());
  return text;
}

}  // namespace

std::string Progress::Line(const RunRecord& record, std::optional<double> staleness,
                           absl::Time now) {
  const auto loss = record.train_loss();
  const double rate = Rate(record.examples(), now);
  if (!loss) return StartText(record);
  uint64_t epoch = 0;
  for (const WorkerRow& row : record.workers()) epoch = std::max(epoch, row.epoch);
  std::string line =
      absl::StrFormat("step %s  epoch %u  loss %.3f", StepsText(record, by_round_), epoch, *loss);
  if (const auto accuracy = record.test_accuracy())
    absl::StrAppendFormat(&line, "  accuracy %.4f", *accuracy);
  absl::StrAppendFormat(&line, "  %.0f examples/s", rate);
  const WorkerCounters totals = record.Totals();
  const std::string saving = SavingText(totals.push_bytes_raw(), totals.push_bytes_encoded());
  absl::StrAppend(&line, "  pushed ", BytesText(totals.push_bytes_encoded()));
  if (!saving.empty()) absl::StrAppend(&line, " (", saving, ")");
  if (staleness) absl::StrAppendFormat(&line, "  staleness %.1f", *staleness);
  const uint32_t lost = record.CountOf(WorkerRow::State::kLost);
  if (lost > 0) absl::StrAppend(&line, "  ", lost, lost == 1 ? " worker lost" : " workers lost");
  if (!record.waiting().empty()) absl::StrAppend(&line, "  ", record.waiting());
  return line;
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
