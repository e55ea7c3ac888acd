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
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin/http_server.h"
#include "admin/server_history.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "server/admin/job_watch.h"

namespace thinwire {

// Thread-safe.
class ServerAdmin {
 public:
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(10);

  // Listens on ADDRESS. The server is not ready yet. CLOCK must outlive the ServerAdmin. Errors:
  // those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<ServerAdmin>> Start(const std::string& address,
                                                            ServerId server, Clock& clock);

  const std::string& address() const { return http_->address(); }

  // Shows the status of SOURCES from now on; the first source is this server. The server is ready.
  void Show(std::vector<StatusSource> sources) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops asking the sources. The server is not ready any more.
  void Hide() ABSL_LOCKS_EXCLUDED(mu_);

  // Return the pages.
  HttpReply Page() const;
  HttpReply StatusJson() const;
  HttpReply Metrics() const;
  HttpReply Healthz() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Readyz() const;

 private:
  ServerAdmin(ServerId server, Clock& clock) : server_(server), clock_(clock) {}

  std::vector<ServerHistory> Histories() const ABSL_LOCKS_EXCLUDED(mu_);
  bool ready() const ABSL_LOCKS_EXCLUDED(mu_);

  const ServerId server_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  std::unique_ptr<JobWatch> watch_ ABSL_GUARDED_BY(mu_);  // null: not ready
  std::unique_ptr<HttpServer> http_;                      // declared last: its pages use the others
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_ADMIN_SERVER_ADMIN_H_
