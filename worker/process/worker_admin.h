// WorkerAdmin is the admin port of a worker process. It shows what the worker's events report.
//
//   /            the status page
//   /status.json the newest event of each kind as protobuf JSON
//   /metrics     the metrics of this worker for Prometheus
//   /healthz     200 while the process runs, whatever its servers do
//   /readyz      200 while the worker is a member of the job; otherwise 503
#ifndef THINWIRE_WORKER_PROCESS_WORKER_ADMIN_H_
#define THINWIRE_WORKER_PROCESS_WORKER_ADMIN_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin/curve.h"
#include "admin/http_server.h"
#include "admin/traffic.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "common/tls/credentials_watch.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Thread-safe.
class WorkerAdmin {
 public:
  // Listens on ADDRESS. CREDENTIALS and CLOCK must outlive the WorkerAdmin. PRICE_PER_GB: see Traffic. Errors: those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<WorkerAdmin>> Start(const std::string& address,
                                                            const std::string& job,
                                                            const CredentialsLog& credentials,
                                                            WorkerId worker, Clock& clock,
                                                            double price_per_gb = 0);

  const std::string& address() const { return http_->address(); }
  std::string page() const { return http_->page(); }  // see HttpServer

  // Shows EVENT from now on.
  void Add(const WorkerEvent& event) ABSL_LOCKS_EXCLUDED(mu_);

  // Return the pages.
  HttpReply Page() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply StatusJson() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Metrics() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Healthz() const { return {.body = "ok\n"}; }
  HttpReply Readyz() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  WorkerAdmin(std::string job, const CredentialsLog& credentials, WorkerId worker, Clock& clock,
              double price_per_gb)
      : job_(std::move(job)),
        credentials_(credentials),
        worker_(worker),
        clock_(clock),
        price_per_gb_(price_per_gb),
        started_(clock.Now()) {}

  Traffic traffic() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool joined() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddStep(const WorkerEvent::Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetWaiting(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string job_;
  const CredentialsLog& credentials_;
  const WorkerId worker_;
  Clock& clock_;
  const double price_per_gb_;
  const absl::Time started_;

  mutable absl::Mutex mu_;
  std::map<WorkerEvent::EventCase, WorkerEvent> newest_ ABSL_GUARDED_BY(mu_);  // by kind
  WorkerCounters counters_ ABSL_GUARDED_BY(mu_);
  // The mean time of a step between the two newest Step events.
  std::optional<double> step_seconds_ ABSL_GUARDED_BY(mu_);
  std::string waiting_ ABSL_GUARDED_BY(mu_);  // empty: the worker does not wait
  absl::Time waiting_since_ ABSL_GUARDED_BY(mu_);
  Curve loss_ ABSL_GUARDED_BY(mu_);
  Curve accuracy_ ABSL_GUARDED_BY(mu_);
  Curve test_loss_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> http_;  // declared last: its pages use the others
};

}  // namespace thinwire

#endif  // THINWIRE_WORKER_PROCESS_WORKER_ADMIN_H_
