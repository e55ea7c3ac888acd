// ServerAdmin is the admin port of a server process.
//
//   /            the status page: at the lead of the whole job, otherwise of this server
//   /status.json the same figures as JSON
//   /metrics     the metrics of this server for Prometheus
//   /healthz     200 while the process works, whatever its peers do; 503 if its job has not answered for kAnswerLimit
//   /readyz      200 while the server has its state and listens; otherwise 503
#ifndef THINWIRE_SERVER_ADMIN_SERVER_ADMIN_H_
#define THINWIRE_SERVER_ADMIN_SERVER_ADMIN_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin/http_server.h"
#include "admin/server_history.h"
#include "admin/traffic.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/tls/credentials_watch.h"
#include "server/admin/job_watch.h"

namespace thinwire {

// Thread-safe.
class ServerAdmin {
 public:
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(10);

  // Listens on ADDRESS. The server is not ready yet. CREDENTIALS and CLOCK must outlive the
  // ServerAdmin. PRICE_PER_GB: see Traffic. Errors: those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<ServerAdmin>> Start(const std::string& address,
                                                            const std::string& job,
                                                            const CredentialsLog& credentials,
                                                            ServerId server, Clock& clock,
                                                            double price_per_gb = 0);

  const std::string& address() const { return http_->address(); }
  std::string page() const { return http_->page(); }  // see HttpServer

  // Shows the status of SOURCES from now on; the first source is this server. The server is ready.
  void Show(std::vector<StatusSource> sources) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops asking the sources. The server is not ready any more: it ends, or if RESTARTS, starts
  // again in this process.
  void Hide(bool restarts) ABSL_LOCKS_EXCLUDED(mu_);

  // Return the pages.
  HttpReply Page() const;
  HttpReply StatusJson() const;
  HttpReply Metrics() const;
  HttpReply Healthz() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Readyz() const;

 private:
  ServerAdmin(std::string job, const CredentialsLog& credentials, ServerId server, Clock& clock,
              double price_per_gb)
      : job_(std::move(job)),
        credentials_(credentials),
        server_(server),
        clock_(clock),
        price_per_gb_(price_per_gb) {}

  std::vector<ServerHistory> Histories() const ABSL_LOCKS_EXCLUDED(mu_);
  bool ready() const ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the traffic of this server. REQUIRES: HISTORIES, the result of Histories(), is not
  // empty.
  Traffic TrafficAt(absl::Time now, const std::vector<ServerHistory>& histories) const
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string job_;
  const CredentialsLog& credentials_;
  const ServerId server_;
  Clock& clock_;
  const double price_per_gb_;
  mutable absl::Mutex mu_;
  absl::Time shown_at_ ABSL_GUARDED_BY(mu_);              // when the server's counters began
  std::unique_ptr<JobWatch> watch_ ABSL_GUARDED_BY(mu_);  // null: not ready
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<HttpServer> http_;  // declared last: its pages use the others
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_ADMIN_SERVER_ADMIN_H_
