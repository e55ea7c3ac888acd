#include "cli/train/train_admin.h"

#include <google/protobuf/util/message_differencer.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "admin/metrics.h"
#include "admin/server_json.h"
#include "admin/server_metrics.h"
#include "admin/server_page.h"
#include "admin/status_table.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

using google::protobuf::util::MessageDifferencer;
using nlohmann::ordered_json;

std::string Decimal(const std::optional<double>& value) {
  return value ? absl::StrFormat("%.4f", *value) : "-";
}

// Returns a figure of every tested epoch; x is the number of finished epochs.
Curve CurveOf(const RunRecord& record, std::optional<double> EpochRow::*figure) {
  Curve curve;
  for (const auto& [epoch, row] : record.epochs()) {
    if (row.*figure) curve.Add(static_cast<double>(epoch + 1), *(row.*figure));
  }
  return curve;
}

std::string WorkersHtml(const RunRecord& record) {
  const std::vector<std::string> columns = {"worker", "state",    "step",      "epoch",
                                            "loss",   "examples", "gradients", "device"};
  std::vector<std::vector<std::string>> rows;
  for (const WorkerRow& row : record.workers()) {
    rows.push_back(
        {absl::StrCat(row.worker.value), StateName(row.state), html::CountText(row.step),
         absl::StrCat(row.epoch), Decimal(row.train_loss), html::CountText(row.examples),
         html::RatioText(row.counters.push_bytes_raw(), row.counters.push_bytes_encoded()),
         row.device});
  }
  return absl::StrCat(html::Heading("Worker processes"), html::Table(columns, rows));
}

ordered_json WorkersJson(const RunRecord& record) {
  ordered_json list = ordered_json::array();
  for (const WorkerRow& row : record.workers()) {
    ordered_json worker = {{"worker", row.worker.value},
                           {"state", StateName(row.state)},
                           {"step", row.step},
                           {"epoch", row.epoch},
                           {"examples", row.examples},
                           {"seconds", row.seconds},
                           {"push_bytes_raw", row.counters.push_bytes_raw()},
                           {"push_bytes_encoded", row.counters.push_bytes_encoded()},
                           {"pull_bytes_raw", row.counters.pull_bytes_raw()},
                           {"pull_bytes_encoded", row.counters.pull_bytes_encoded()},
                           {"waiting", row.waiting}};
    if (row.train_loss) worker["train_loss"] = *row.train_loss;
    list.push_back(std::move(worker));
  }
  return list;
}

}  // namespace

TrainAdmin::TrainAdmin(const JobConfig& config, Clock& clock, double price_per_gb)
    : job_(config.name()),
      loss_only_(config.task().loss() == Task::Loss::script),
      clock_(clock),
      price_per_gb_(price_per_gb),
      record_(config.consistency().workers()),
      updated_(clock.Now()) {
  for (uint32_t i = 0; i < config.servers(); ++i) servers_.emplace_back(ServerId{i});
}

absl::StatusOr<std::unique_ptr<TrainAdmin>> TrainAdmin::Start(const std::string& address,
                                                              const JobConfig& config, Clock& clock,
                                                              double price_per_gb) {
  std::unique_ptr<TrainAdmin> admin(new TrainAdmin(config, clock, price_per_gb));
  ASSIGN_OR_RETURN(admin->http_, HttpServer::Start(address, AdminOptions(*admin)));
  return admin;
}

void TrainAdmin::Update(const RunRecord& record, const std::vector<StatusReply>& replies) {
  absl::MutexLock lock(&mu_);
  updated_ = clock_.Now();
  if (const auto loss = record.train_loss(); loss && record.steps() > record_.steps()) {
    loss_.Add(static_cast<double>(record.steps()), *loss);
  }
  record_ = record;
  for (const StatusReply& reply : replies) {
    if (reply.server() >= servers_.size()) continue;
    ServerHistory& server = servers_[reply.server()];
    // A server that no longer answers has the same newest reply as before. Before the first Join,
    // the replies of a server do not differ.
    if (server.latest() == nullptr || !reply.sealed() ||
        !MessageDifferencer::Equals(*server.latest(), reply)) {
      server.Add(reply, updated_);
    }
  }
}

Traffic TrainAdmin::traffic() const {
  return TrafficOf(record_.Totals(), absl::Seconds(record_.seconds()), price_per_gb_,
                   /*whole_run=*/true);
}

HttpReply TrainAdmin::Page() const {
  absl::MutexLock lock(&mu_);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"step", absl::StrCat(html::CountText(record_.steps()), " of ",
                            html::CountText(record_.planned_steps()))},
      {"train loss", Decimal(record_.train_loss())},
      {"test accuracy", loss_only_ ? "no accuracy" : Decimal(record_.test_accuracy())},
      {"test loss", Decimal(record_.test_loss())},
      {"examples", html::CountText(record_.examples())},
      {"training", html::DurationText(absl::Seconds(record_.seconds()))},
      {"restarts", absl::StrCat(record_.restarts().size())}};
  for (auto& fact : TrafficFacts(traffic())) facts.push_back(std::move(fact));
  std::string body = html::Facts(facts);
  if (const std::string waiting = record_.waiting(); !waiting.empty()) {
    absl::StrAppend(&body, html::Paragraph(waiting, true));
  }
  if (const std::string diverged = record_.diverged(); !diverged.empty()) {
    absl::StrAppend(&body, html::Paragraph(absl::StrCat("diverged: ", diverged), true));
  }
  absl::StrAppend(
      &body, html::Chart("train loss", "step", loss_.points()),
      loss_only_
          ? html::Chart("test loss", "epoch", CurveOf(record_, &EpochRow::test_loss).points())
          : html::Chart("test accuracy", "epoch",
                        CurveOf(record_, &EpochRow::test_accuracy).points()),
      WorkersHtml(record_),
      SectionHtml("Bytes saved, as the workers count them", BytesTable(record_.Totals())),
      html::Heading("The servers"), ServersHtml(servers_, clock_.Now(), /*with_curves=*/false));
  return {.type = "text/html; charset=utf-8",
          .body = html::Page(absl::StrCat("thinwire train, job ", job_), body)};
}

HttpReply TrainAdmin::StatusJson() const {
  absl::MutexLock lock(&mu_);
  ordered_json status = {{"program", "train"},
                         {"job", job_},
                         {"steps", record_.steps()},
                         {"planned_steps", record_.planned_steps()},
                         {"seconds", record_.seconds()},
                         {"examples", record_.examples()},
                         {"restarts", record_.restarts().size()},
                         {"traffic", TrafficJson(traffic())},
                         {"waiting", record_.waiting()},
                         {"workers", WorkersJson(record_)}};
  if (const auto loss = record_.train_loss()) status["train_loss"] = *loss;
  if (const auto accuracy = record_.test_accuracy()) status["test_accuracy"] = *accuracy;
  if (const auto loss = record_.test_loss()) status["test_loss"] = *loss;
  status.update(ServersJson(servers_, clock_.Now()));
  return {.type = "application/json",
          .body = status.dump(-1, ' ', false, ordered_json::error_handler_t::replace)};
}

HttpReply TrainAdmin::Metrics() const {
  absl::MutexLock lock(&mu_);
  MetricList metrics = MetricList::OfProcess(job_, "train", /*credentials=*/nullptr);
  metrics.Gauge("ready", "1 if the process is ready: as /readyz.",
                record_.CountOf(WorkerRow::State::kTraining) > 0 ? 1 : 0);
  for (const auto state :
       {WorkerRow::State::kStarting, WorkerRow::State::kTraining, WorkerRow::State::kDone,
        WorkerRow::State::kStopped, WorkerRow::State::kLost, WorkerRow::State::kDiverged}) {
    metrics.Gauge("train_workers", "Workers by state.", record_.CountOf(state),
                  {{"state", StateName(state)}});
  }
  metrics.Gauge("train_step", "The largest reported step of a worker.",
                static_cast<double>(record_.steps()));
  metrics.Gauge("train_planned_steps", "The number of steps of the whole run.",
                static_cast<double>(record_.planned_steps()));
  metrics.Counter("train_examples_total", "Examples that all workers have trained on.",
                  static_cast<double>(record_.examples()));
  metrics.Counter("train_restarts_total", "Processes that died and were started again.",
                  static_cast<double>(record_.restarts().size()));
  if (const auto loss = record_.train_loss()) {
    metrics.Gauge("train_loss", "Mean of the workers' last reported losses.", *loss);
  }
  if (const auto accuracy = record_.test_accuracy()) {
    metrics.Gauge("train_test_accuracy_ratio", "The newest test accuracy.", *accuracy);
  }
  if (const auto loss = record_.test_loss()) {
    metrics.Gauge("train_test_loss", "The newest test loss.", *loss);
  }
  metrics.AddWorkerCounters(record_.Totals());
  AddJobMetrics(servers_, clock_.Now(), /*stopping=*/false, metrics);
  AddTrafficMetrics(traffic(), metrics);
  return {.type = kMetricsType, .body = metrics.Text()};
}

HttpReply TrainAdmin::Healthz() const {
  absl::MutexLock lock(&mu_);
  const absl::Duration age = clock_.Now() - updated_;
  if (age <= kUpdateLimit) return {.body = "ok\n"};
  return {.status = 503,
          .body = absl::StrFormat("the run was not updated for %.0f s (expected at most %.0f s)\n",
                                  absl::ToDoubleSeconds(age), absl::ToDoubleSeconds(kUpdateLimit))};
}

HttpReply TrainAdmin::Readyz() const {
  absl::MutexLock lock(&mu_);
  if (record_.CountOf(WorkerRow::State::kTraining) > 0) return {.body = "ready\n"};
  return {.status = 503, .body = "not ready: no worker trains\n"};
}

}  // namespace thinwire
