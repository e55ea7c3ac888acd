#include "worker/process/worker_admin.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "admin/metrics.h"
#include "admin/status_table.h"
#include "common/base/status_macros.h"
#include "proto/counters.h"
#include "proto/worker_event_json.h"

namespace thinwire {
namespace {

const char* KindName(WorkerEvent::EventCase kind) {
  return WorkerEvent::descriptor()->FindFieldByNumber(kind)->name().c_str();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerAdmin>> WorkerAdmin::Start(const std::string& address,
                                                                const std::string& job,
                                                                const CredentialsLog& credentials,
                                                                WorkerId worker, Clock& clock,
                                                                double price_per_gb) {
  std::unique_ptr<WorkerAdmin> admin(
      new WorkerAdmin(job, credentials, worker, clock, price_per_gb));
  ASSIGN_OR_RETURN(admin->http_, HttpServer::Start(address, AdminOptions(*admin)));
  return admin;
}

void WorkerAdmin::Add(const WorkerEvent& event) {
  absl::MutexLock lock(&mu_);
  if (event.has_step()) AddStep(event.step());
  if (event.has_waiting()) SetWaiting(event.waiting().text());
  if (event.has_epoch()) {
    counters_ = event.epoch().counters();
    if (event.epoch().has_test_accuracy()) {
      accuracy_.Add(event.epoch().epoch() + 1, event.epoch().test_accuracy());
    }
    if (event.epoch().has_test_loss()) {
      test_loss_.Add(event.epoch().epoch() + 1, event.epoch().test_loss());
    }
  }
  if (event.has_done()) {
    counters_ = event.done().counters();
    SetWaiting("");
  }
  newest_[event.event_case()] = event;
}

void WorkerAdmin::AddStep(const WorkerEvent::Step& step) {
  if (const auto last = newest_.find(WorkerEvent::kStep); last != newest_.end()) {
    const WorkerEvent::Step& before = last->second.step();
    if (step.step() > before.step()) {
      step_seconds_ =
          (step.seconds() - before.seconds()) / static_cast<double>(step.step() - before.step());
    }
  }
  counters_ = step.counters();
  if (step.has_loss()) loss_.Add(static_cast<double>(step.step()), step.loss());
  SetWaiting(step.waiting());
}

void WorkerAdmin::SetWaiting(const std::string& text) {
  if (text == waiting_) return;
  waiting_ = text;
  waiting_since_ = clock_.Now();
}

Traffic WorkerAdmin::traffic() const {
  return TrafficOf(counters_, clock_.Now() - started_, price_per_gb_, /*whole_run=*/false);
}

bool WorkerAdmin::joined() const {
  return newest_.contains(WorkerEvent::kJoined) && !newest_.contains(WorkerEvent::kDone) &&
         !newest_.contains(WorkerEvent::kError);
}

HttpReply WorkerAdmin::Readyz() const {
  absl::MutexLock lock(&mu_);
  if (joined()) return {.body = "ready\n"};
  return {.status = 503, .body = "not ready: not a member of the job\n"};
}

HttpReply WorkerAdmin::Page() const {
  absl::MutexLock lock(&mu_);
  const auto of = [this](WorkerEvent::EventCase kind) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const auto found = newest_.find(kind);
    return found == newest_.end() ? WorkerEvent() : found->second;
  };
  const WorkerEvent::Joined joined_event = of(WorkerEvent::kJoined).joined();
  const WorkerEvent::Step step = of(WorkerEvent::kStep).step();
  const uint64_t planned_steps =
      step.planned_steps() > 0 ? step.planned_steps() : joined_event.planned_steps();
  std::vector<std::pair<std::string, std::string>> facts = {
      {"step", absl::StrCat(html::CountText(step.step()), " of ", html::CountText(planned_steps))},
      {"epoch", absl::StrCat(step.epoch())},
      {"step time",
       step_seconds_ ? absl::StrFormat("%.1f ms", *step_seconds_ * 1000) : std::string("-")},
      {"examples", html::CountText(step.examples())},
      {"loss", step.has_loss() ? absl::StrFormat("%.4f", step.loss()) : "-"},
      {"device", joined_event.device().empty() ? "-" : joined_event.device()}};
  for (auto& fact : TrafficFacts(traffic())) facts.push_back(std::move(fact));
  std::string body = html::Facts(facts);
  if (!waiting_.empty()) {
    absl::StrAppend(
        &body, html::Paragraph(
                   absl::StrCat("Waiting for ", html::DurationText(clock_.Now() - waiting_since_),
                                ": ", waiting_),
                   true));
  }
  if (newest_.contains(WorkerEvent::kError)) {
    absl::StrAppend(&body, html::Paragraph(of(WorkerEvent::kError).error().message(), true));
  } else if (newest_.contains(WorkerEvent::kDone)) {
    absl::StrAppend(&body, html::Paragraph("The worker has left the job."));
  } else if (!joined()) {
    absl::StrAppend(&body, html::Paragraph("The worker has not joined yet.", true));
  }
  absl::StrAppend(&body, html::Chart("loss", "step", loss_.points()));
  if (!accuracy_.points().empty()) {
    absl::StrAppend(&body, html::Chart("test accuracy", "epoch", accuracy_.points()));
  } else if (!test_loss_.points().empty()) {
    absl::StrAppend(&body, html::Chart("test loss", "epoch", test_loss_.points()));
  }
  absl::StrAppend(&body, SectionHtml("Bytes saved", BytesTable(counters_)));
  StatusTable counts = {.columns = {"counter", "count"}, .rows = {}};
  ForEachCounter(counters_, [&counts](const std::string& name, uint64_t value) {
    counts.rows.push_back({name, html::CountText(value)});
  });
  absl::StrAppend(&body, SectionHtml("Counters", counts));
  const std::string title = absl::StrCat("thinwire worker ", worker_.value, ", job ", job_);
  return {.type = "text/html; charset=utf-8", .body = html::Page(title, body)};
}

HttpReply WorkerAdmin::StatusJson() const {
  absl::MutexLock lock(&mu_);
  nlohmann::ordered_json status = {
      {"program", "worker"}, {"worker", worker_.value}, {"job", job_}, {"ready", joined()}};
  if (step_seconds_) status["step_seconds"] = *step_seconds_;
  status["waiting"] = waiting_;
  status["traffic"] = TrafficJson(traffic());
  if (!waiting_.empty()) {
    status["waiting_seconds"] = absl::ToDoubleSeconds(clock_.Now() - waiting_since_);
  }
  for (const auto& [kind, event] : newest_) {
    const auto json = nlohmann::ordered_json::parse(PrintWorkerEvent(event), nullptr,
                                                    /*allow_exceptions=*/false);
    if (json.contains(KindName(kind))) status[KindName(kind)] = json[KindName(kind)];
  }
  return {.type = "application/json",
          .body = status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpReply WorkerAdmin::Metrics() const {
  absl::MutexLock lock(&mu_);
  MetricList metrics = MetricList::OfProcess(job_, "worker", &credentials_);
  metrics.Gauge("ready", "1 if the process is ready: as /readyz.", joined() ? 1 : 0);
  metrics.AddWorkerCounters(counters_);
  AddTrafficMetrics(traffic(), metrics);
  const auto found = newest_.find(WorkerEvent::kStep);
  const WorkerEvent::Step step =
      found == newest_.end() ? WorkerEvent::Step() : found->second.step();
  metrics.Counter("worker_examples_total", "Examples that the worker has trained on.",
                  static_cast<double>(step.examples()));
  metrics.Counter("worker_training_seconds_total", "Time of training, without evaluation.",
                  step.seconds());
  metrics.Gauge("worker_step", "The last reported step.", static_cast<double>(step.step()));
  metrics.Gauge("worker_epoch", "The epoch of the last reported step.", step.epoch());
  if (step_seconds_) {
    metrics.Gauge("worker_step_seconds", "Mean time of a step since the previous report.",
                  *step_seconds_);
  }
  if (step.has_loss()) metrics.Gauge("worker_loss", "The last reported loss.", step.loss());
  if (step.has_loss_scale()) {
    metrics.Gauge("worker_loss_scale", "The loss scale of the next step.", step.loss_scale());
  }
  if (const auto points = accuracy_.points(); !points.empty()) {
    metrics.Gauge("worker_test_accuracy_ratio", "The test accuracy after the last tested epoch.",
                  points.back().y);
  }
  if (const auto points = test_loss_.points(); !points.empty()) {
    metrics.Gauge("worker_test_loss", "The test loss after the last tested epoch.",
                  points.back().y);
  }
  metrics.Gauge("worker_wait_seconds", "Time since the current wait for others began; 0: no wait.",
                waiting_.empty() ? 0 : absl::ToDoubleSeconds(clock_.Now() - waiting_since_));
  return {.type = kMetricsType, .body = metrics.Text()};
}

}  // namespace thinwire
