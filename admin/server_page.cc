#include "admin/server_page.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "admin/html.h"
#include "admin/job_condition.h"
#include "admin/training_curves.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

using html::BytesText;
using html::CountText;
using html::DurationText;

// The page lists at most this many shards.
constexpr size_t kMaxShardRowCount = 256;

std::string PushesHtml(const JobSummary& summary) {
  std::vector<std::vector<std::string>> verdicts;
  std::vector<std::string> without;  // verdicts that no push has
  for (const PushVerdict& verdict : PushVerdicts()) {
    const auto found = summary.verdicts.find(verdict.name);
    const uint64_t count = found == summary.verdicts.end() ? 0 : found->second;
    if (count == 0) {
      without.emplace_back(verdict.name);
    } else {
      verdicts.push_back({verdict.name, CountText(count)});
    }
  }
  std::string text =
      absl::StrCat(html::Heading("Pushes by verdict"),
                   html::Table(std::vector<std::string>{"verdict", "pushes"}, verdicts));
  if (!without.empty()) {
    absl::StrAppend(&text,
                    html::Paragraph(absl::StrCat("no push: ", absl::StrJoin(without, ", "))));
  }
  if (!summary.staleness.empty()) {
    absl::StrAppend(
        &text,
        html::Heading(absl::StrFormat("Staleness in updates, mean %.2f", summary.mean_staleness)),
        html::Bars(summary.staleness));
  }
  return absl::StrCat(text, SectionHtml("Bytes saved", BytesTable(summary)));
}

std::string DurabilityHtml(std::span<const ServerHistory> servers, absl::Time now) {
  const StatusTable table = DurabilityTable(servers, now);
  return table.rows.empty() ? "" : SectionHtml("Durability since the server's start", table);
}

std::string ShardsHtml(std::span<const ServerHistory> servers) {
  const std::vector<std::string> columns = {"shard",  "server",  "state",
                                            "values", "version", "frontier"};
  std::vector<std::vector<std::string>> rows;
  size_t shard_count = 0;
  for (const ServerHistory& server : servers) {
    if (server.latest() == nullptr) continue;
    for (const ShardStatus& shard : server.latest()->shards()) {
      if (++shard_count > kMaxShardRowCount) continue;
      rows.push_back({absl::StrCat(shard.shard()), absl::StrCat(server.server().value),
                      shard.open() ? "open" : "shut", CountText(shard.values()),
                      CountText(shard.version()), CountText(shard.frontier())});
    }
  }
  std::string text = html::Table(columns, rows);
  if (shard_count > rows.size()) {
    absl::StrAppend(&text, html::Paragraph(absl::StrCat(shard_count - rows.size(),
                                                        " more shards are in /status.json")));
  }
  return html::Fold(absl::StrCat("Shards: ", CountText(shard_count)), text);
}

// Returns the curves that have a line. The lead's replies are those of the first server.
std::string CurvesHtml(std::span<const ServerHistory> servers) {
  if (servers.empty()) return "";
  const TrainingCurves& curves = servers.front().curves();
  std::string text;
  const std::pair<const char*, const Curve&> charts[] = {
      {"mean training loss of the workers", curves.loss()},
      {"test accuracy", curves.accuracy()},
      {"test loss", curves.test_loss()}};
  for (const auto& [name, curve] : charts) {
    const std::vector<Curve::Point> points = curve.points();
    if (points.size() > 1) absl::StrAppend(&text, html::Chart(name, "step", points));
  }
  return text.empty() ? "" : absl::StrCat(html::Heading("Training"), text);
}

// Returns links to the pages of the other processes that have one.
std::string LinksHtml(std::span<const ServerHistory> servers, absl::Time now) {
  std::vector<std::pair<std::string, std::string>> pages;
  for (const ServerHistory& server : servers.subspan(std::min<size_t>(1, servers.size()))) {
    const StatusReply* const reply = server.latest();
    if (reply == nullptr || reply->page().empty()) continue;
    pages.emplace_back(absl::StrCat("server ", server.server().value), reply->page());
  }
  for (const auto& [number, worker] : WorkersOf(servers, now)) {
    if (!worker.live || worker.progress.page().empty()) continue;
    pages.emplace_back(absl::StrCat("worker ", number), worker.progress.page());
  }
  return pages.empty() ? "" : html::Links("Pages:", pages);
}

}  // namespace

StatusTable WorkerTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"worker", "state", "next step", "heard", "incarnation"},
                       .rows = {}};
  const std::map<uint32_t, WorkerSight> workers = WorkersOf(servers, now);
  // Programs that use the client need not state their progress.
  const bool has_progress = std::ranges::any_of(
      workers, [](const auto& worker) { return SpeedOf(worker.second.progress) > 0; });
  if (has_progress) table.columns.insert(table.columns.end(), {"examples/s", "loss"});
  for (const auto& [number, worker] : workers) {
    std::vector<std::string>& row = table.rows.emplace_back(std::vector<std::string>{
        absl::StrCat(number), worker.state(), CountText(worker.next),
        absl::StrCat(DurationText(worker.heard), " ago"), absl::StrCat(worker.incarnation)});
    if (!has_progress) continue;
    row.push_back(html::NumberText(SpeedOf(worker.progress)));
    row.push_back(worker.progress.has_loss() ? html::NumberText(worker.progress.loss()) : "-");
  }
  return table;
}

StatusTable ServerTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"server", "step", "shards", "parameters", "received", "sent",
                                   "memory", "answered"},
                       .rows = {}};
  for (const ServerHistory& server : servers) {
    const std::string number = absl::StrCat(server.server().value);
    const StatusReply* reply = server.latest();
    if (reply == nullptr) {
      table.rows.push_back({number, "-", "-", "-", "-", "-", "-", "never"});
      continue;
    }
    table.rows.push_back(
        {number, CountText(server.step()), CountText(static_cast<uint64_t>(reply->shards_size())),
         CountText(ValueCountOf(*reply)), BytesText(reply->push_payload_bytes()),
         BytesText(reply->parameters_payload_bytes()), BytesText(reply->buffered_bytes()),
         absl::StrCat(DurationText(now - server.answered()), " ago")});
  }
  return table;
}

StatusTable DurabilityTable(std::span<const ServerHistory> servers, absl::Time now) {
  StatusTable table = {.columns = {"server", "log", "records", "flushes", "checkpoints",
                                   "last checkpoint", "to replay"},
                       .rows = {}};
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.latest();
    if (reply == nullptr || (reply->log_records() == 0 && reply->checkpoints() == 0 &&
                             reply->failed_checkpoints() == 0)) {
      continue;
    }
    std::string checkpoints = CountText(reply->checkpoints());
    if (reply->failed_checkpoints() > 0) {
      absl::StrAppend(&checkpoints, ", ", CountText(reply->failed_checkpoints()), " failed");
    }
    table.rows.push_back(
        {absl::StrCat(server.server().value), BytesText(reply->log_bytes()),
         CountText(reply->log_records()), CountText(reply->log_commits()), std::move(checkpoints),
         server.checkpointed() ? absl::StrCat(DurationText(now - *server.checkpointed()), " ago")
                               : "none",
         absl::StrCat(CountText(server.replay_record_count()), " records, ",
                      BytesText(server.replay_bytes()))});
  }
  return table;
}

StatusTable BytesTable(const JobSummary& summary) {
  return BytesTable({summary.push_bytes, summary.push_fp32_bytes},
                    {summary.parameter_bytes, summary.parameter_fp32_bytes}, /*estimated=*/true);
}

std::string ServersHtml(std::span<const ServerHistory> servers, absl::Time now, bool with_curves) {
  const JobSummary summary = SummaryOf(servers, now);
  const JobCondition condition = ConditionOf(servers, summary, now);
  const bool goes_on = condition.state != JobCondition::State::kFinished &&
                       condition.state != JobCondition::State::kDiverged;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"step", StepText(summary)},
      {"time left", goes_on ? TimeLeftText(summary.training) : "-"},
      {"speed", goes_on ? SpeedText(summary.training) : "-"},
      {"codecs", CodecsText(summary.training)},
      {"loss", summary.training.loss ? html::NumberText(*summary.training.loss) : "-"},
      {"newest test", TestText(summary.training.test)},
      {"mode", ModeText(summary)},
      // A step that has just begun tells nothing.
      {"open for",
       !goes_on || summary.step_age < absl::Seconds(1) ? "-" : DurationText(summary.step_age)},
      {"live workers", absl::StrCat(summary.live.size(), " of ", summary.worker_count)},
      {"servers", absl::StrCat(summary.answered_count, " of ", servers.size())},
      {"noise scale", NoiseScaleText(summary.noise)},
      {"batch", BatchText(summary.batch)},
      {"gradient compression", html::RatioText(summary.push_fp32_bytes, summary.push_bytes)},
      {"parameter compression",
       html::RatioText(summary.parameter_fp32_bytes, summary.parameter_bytes)},
      {"adaptive push", summary.push_choice.empty() ? "-" : summary.push_choice},
      {"gradient", ClippingText(summary.clipping)}};
  std::erase_if(facts, [](const auto& fact) { return fact.second == "-"; });
  const bool alarm = condition.state == JobCondition::State::kWaiting ||
                     condition.state == JobCondition::State::kDiverged;
  std::string text = html::State(StateText(condition), alarm);
  for (const std::string& problem : condition.problems) {
    absl::StrAppend(&text, html::Problem(problem));
  }
  if (!summary.insecure.empty()) {
    absl::StrAppend(&text, html::Problem(InsecureText(summary.insecure)));
  }
  if (summary.worker_count == 0 && summary.answered_count > 0) {
    absl::StrAppend(&text, html::Paragraph("No worker has joined yet.", true));
  }
  return absl::StrCat(text, html::Facts(facts), with_curves ? CurvesHtml(servers) : "",
                      LinksHtml(servers, now), SectionHtml("Workers", WorkerTable(servers, now)),
                      SectionHtml("Servers", ServerTable(servers, now)), PushesHtml(summary),
                      DurabilityHtml(servers, now), ShardsHtml(servers));
}

}  // namespace thinwire
