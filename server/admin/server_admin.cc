#include "server/admin/server_admin.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"
#include "admin/job_summary.h"
#include "admin/metrics.h"
#include "admin/server_json.h"
#include "admin/server_metrics.h"
#include "admin/server_page.h"
#include "common/base/status_macros.h"

namespace thinwire {

absl::StatusOr<std::unique_ptr<ServerAdmin>> ServerAdmin::Start(const std::string& address,
                                                                ServerId server, Clock& clock) {
  std::unique_ptr<ServerAdmin> admin(new ServerAdmin(server, clock));
  ASSIGN_OR_RETURN(admin->http_, HttpServer::Start(address, AdminOptions(*admin)));
  return admin;
}

void ServerAdmin::Show(std::vector<StatusSource> sources) {
  auto watch = std::make_unique<JobWatch>(std::move(sources), clock_);
  absl::MutexLock lock(&mu_);
  watch_ = std::move(watch);
}

void ServerAdmin::Hide() {
  std::unique_ptr<JobWatch> watch;
  absl::MutexLock lock(&mu_);
  watch_.swap(watch);
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

HttpReply ServerAdmin::Page() const {
  const std::vector<ServerHistory> histories = Histories();
  const absl::Time now = clock_.Now();
  const std::string job = SummaryOf(histories, now).job;
  const std::string title = absl::StrCat("thinwire server ", server_.value,
                                         job.empty() ? "" : absl::StrCat(", job ", job));
  const std::string body = histories.empty()
                               ? html::Paragraph("This server is starting or stopping.", true)
                               : ServersHtml(histories, now);
  return {.type = "text/html; charset=utf-8", .body = html::Page(title, body)};
}

HttpReply ServerAdmin::StatusJson() const {
  nlohmann::ordered_json status = {
      {"program", "server"}, {"server", server_.value}, {"ready", ready()}};
  status.update(ServersJson(Histories(), clock_.Now()));
  return {.type = "application/json",
          .body = status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpReply ServerAdmin::Metrics() const {
  const std::vector<ServerHistory> histories = Histories();
  MetricList metrics;
  metrics.BuildInfo("server");
  metrics.ResidentMemory();
  metrics.Gauge("ready", "1 if the process is ready: as /readyz.", histories.empty() ? 0 : 1);
  if (!histories.empty()) AddServerMetrics(histories.front(), clock_.Now(), metrics);
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
