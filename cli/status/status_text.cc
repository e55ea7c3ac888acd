#include "cli/status/status_text.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "admin/job_condition.h"
#include "admin/job_summary.h"
#include "admin/server_page.h"
#include "cli/terminal/table.h"

namespace thinwire {
namespace {

using html::CountText;
using html::DurationText;

void AddFact(const char* name, const std::string& value, std::string& text) {
  absl::StrAppendFormat(&text, "%-12s%s\n", name, value);
}

std::string OpenStepText(const JobSummary& summary) {
  std::string text = StepText(summary);
  if (summary.step_age > absl::ZeroDuration()) {
    absl::StrAppend(&text, ", open for ", DurationText(summary.step_age));
  }
  return text;
}

std::string FactsText(std::span<const ServerHistory> servers, const JobSummary& summary,
                      const JobCondition& condition) {
  std::string text;
  if (summary.answered_count > 0) {
    AddFact("job", summary.job, text);
    AddFact("state", StateText(condition), text);
    if (!summary.rule.mode.empty()) AddFact("mode", ModeText(summary), text);
    AddFact("generation", absl::StrCat(summary.generation), text);
    AddFact("step", OpenStepText(summary), text);
    if (summary.training.examples_per_second > 0) {
      AddFact("speed", SpeedText(summary.training), text);
    }
    if (summary.training.loss) AddFact("loss", html::NumberText(*summary.training.loss), text);
    if (summary.training.test.step() > 0) AddFact("test", TestText(summary.training.test), text);
  }
  AddFact("servers", absl::StrCat(summary.answered_count, " of ", servers.size(), " answered"),
          text);
  if (summary.answered_count == 0) return text;
  std::string workers = absl::StrCat(summary.live.size(), " of ", summary.worker_count, " live");
  if (summary.target_workers > 0) {
    absl::StrAppend(&workers, ", ", summary.target_workers, " wanted");
  }
  if (summary.worker_count == 0) workers = "none has joined yet";
  AddFact("workers", workers, text);
  if (summary.noise.scale()) AddFact("noise scale", NoiseScaleText(summary.noise), text);
  if (summary.batch.examples > 0) AddFact("batch", BatchText(summary.batch), text);
  if (!summary.push_choice.empty()) AddFact("push", summary.push_choice, text);
  if (summary.clipping.gradient_norm > 0) {
    AddFact("gradient", ClippingText(summary.clipping), text);
  }
  if (!summary.insecure.empty()) absl::StrAppend(&text, InsecureText(summary.insecure), "\n");
  return text;
}

std::string TextOf(const StatusTable& table) { return TextTable(table.columns, table.rows); }

std::string WorkersText(std::span<const ServerHistory> servers, absl::Time now) {
  const StatusTable workers = WorkerTable(servers, now);
  return workers.rows.empty() ? "" : "\n" + TextOf(workers);
}

std::string PushesText(const JobSummary& summary) {
  std::vector<std::string> columns = {"verdict"};
  std::vector<std::string> row = {"pushes"};
  for (const auto& [verdict, count] : summary.verdicts) {
    columns.push_back(verdict);
    row.push_back(CountText(count));
  }
  const uint64_t largest = summary.staleness.empty() ? 0 : summary.staleness.rbegin()->first;
  StatusTable bytes = BytesTable(summary);
  bytes.columns[0] = "bytes";  // a terminal shows no headings
  return absl::StrCat("\n", TextTable(columns, {&row, 1}),
                      absl::StrFormat("staleness of accepted pushes: mean %.2f, max %d\n\n",
                                      summary.mean_staleness, largest),
                      TextOf(bytes));
}

// Returns "" for servers without a log and without checkpoints.
std::string DurabilityText(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = DurabilityTable(servers, now);
  if (table.rows.empty()) return "";
  // The last column, "to replay", does not fit 80 columns.
  table.columns.pop_back();
  for (std::vector<std::string>& row : table.rows) row.pop_back();
  return "\n" + TextOf(table);
}

}  // namespace

std::string StatusText(std::span<const ServerHistory> servers, absl::Time now) {
  const JobSummary summary = SummaryOf(servers, now);
  const JobCondition condition = ConditionOf(servers, summary, now);
  std::string text = FactsText(servers, summary, condition);
  for (const std::string& problem : condition.problems) absl::StrAppend(&text, problem, "\n");
  absl::StrAppend(&text, WorkersText(servers, now), "\n", TextOf(ServerTable(servers, now)));
  if (summary.answered_count == 0) return text;
  return absl::StrCat(text, PushesText(summary), DurabilityText(servers, now));
}

}  // namespace thinwire
