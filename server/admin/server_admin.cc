#include "server/admin/server_admin.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "admin/job_condition.h"
#include "admin/metrics.h"
#include "admin/server_json.h"
#include "admin/server_metrics.h"
#include "admin/server_page.h"
#include "admin/traffic.h"
#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<ServerAdmin>> ServerAdmin::Start(const std::string& address,
                                                                const std::string& job,
                                                                const CredentialsLog& credentials,
                                                                ServerId server, Clock& clock,
                                                                double price_per_gb) {
  std::unique_ptr<ServerAdmin> admin(
      new ServerAdmin(job, credentials, server, clock, price_per_gb));
  ASSIGN_OR_RETURN(admin->http_, HttpServer::Start(address, AdminOptions(*admin)));
  return admin;
}

void ServerAdmin::Show(std::vector<StatusSource> sources) {
  auto watch = std::make_unique<JobWatch>(std::move(sources), clock_);
  absl::MutexLock lock(&mu_);
  watch_ = std::move(watch);
  shown_at_ = clock_.Now();
}

void ServerAdmin::Hide(bool restarts) {
  std::unique_ptr<JobWatch> watch;
  absl::MutexLock lock(&mu_);
  watch_.swap(watch);
  stopping_ = !restarts;
}

std::vector<ServerHistory> ServerAdmin::Histories() const {
  absl::MutexLock lock(&mu_);
  if (watch_ == nullptr) return {};
  return watch_->histories();
}

bool ServerAdmin::ready() const {
  absl::MutexLock lock(&mu_);
  return watch_ != nullptr;
}

bool ServerAdmin::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

Traffic ServerAdmin::TrafficAt(absl::Time now, const std::vector<ServerHistory>& histories) const {
  const StatusReply* const reply = histories.front().latest();
  absl::MutexLock lock(&mu_);
  return TrafficOf(reply == nullptr ? StatusReply() : *reply, now - shown_at_, price_per_gb_);
}

HttpReply ServerAdmin::Page() const {
  const std::vector<ServerHistory> histories = Histories();
  const absl::Time now = clock_.Now();
  const std::string title = absl::StrCat("thinwire server ", server_.value, ", job ", job_);
  const char* hidden = stopping() ? "This server is stopping." : "This server is starting.";
  const std::string body =
      histories.empty()
          ? html::Paragraph(hidden, true)
          : absl::StrCat(ServersHtml(histories, now), html::Heading("Traffic of this server"),
                         html::Facts(TrafficFacts(TrafficAt(now, histories))));
  return {.type = "text/html; charset=utf-8", .body = html::Page(title, body)};
}

HttpReply ServerAdmin::StatusJson() const {
  nlohmann::ordered_json status = {
      {"program", "server"}, {"server", server_.value}, {"ready", ready()}};
  const std::vector<ServerHistory> histories = Histories();
  const absl::Time now = clock_.Now();
  if (!histories.empty()) status["traffic"] = TrafficJson(TrafficAt(now, histories));
  status.update(ServersJson(histories, now));
  if (stopping()) status["state"] = status["state_text"] = NameOf(JobCondition::State::kStopping);
  return {.type = "application/json",
          .body = status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpReply ServerAdmin::Metrics() const {
  const std::vector<ServerHistory> histories = Histories();
  MetricList metrics = MetricList::OfProcess(job_, "server", &credentials_);
  metrics.Gauge("ready", "1 if the process is ready: as /readyz.", histories.empty() ? 0 : 1);
  const absl::Time now = clock_.Now();
  if (!histories.empty()) {
    AddServerMetrics(histories.front(), now, metrics);
    AddTrafficMetrics(TrafficAt(now, histories), metrics);
  }
  if (server_ == ServerId{0}) AddJobMetrics(histories, now, stopping(), metrics);
  return {.type = kMetricsType, .body = metrics.Text()};
}

HttpReply ServerAdmin::Healthz() const {
  absl::MutexLock lock(&mu_);
  // A server that is starting may read its state from disk for minutes.
  if (watch_ == nullptr) return {.body = "ok: starting or stopping\n"};
  const absl::Duration pending = watch_->pending();
  if (pending <= kAnswerLimit) return {.body = "ok\n"};
  return {
      .status = 503,
      .body = absl::StrFormat("the job has not answered for %.0f s (expected at most %.0f s)\n",
                              absl::ToDoubleSeconds(pending), absl::ToDoubleSeconds(kAnswerLimit))};
}

HttpReply ServerAdmin::Readyz() const {
  if (ready()) return {.body = "ready\n"};
  return {.status = 503, .body = "not ready: starting or stopping\n"};
}

}  // namespace thinwire
