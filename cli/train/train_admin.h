// TrainAdmin is the admin port of `thinwire train`.
//
//   /            the status page: workers, loss, accuracy and servers
//   /status.json the same figures as JSON
//   /metrics     the metrics of the run for Prometheus
//   /healthz     200 while the run is updated; 503 if it was not updated for kUpdateLimit
//   /readyz      200 while a worker trains; otherwise 503
#ifndef THINWIRE_CLI_TRAIN_TRAIN_ADMIN_H_
#define THINWIRE_CLI_TRAIN_TRAIN_ADMIN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin/curve.h"
#include "admin/http_server.h"
#include "admin/server_history.h"
#include "admin/traffic.h"
#include "cli/train/run_record.h"
#include "common/time/clock.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace thinwire {

// Thread-safe.
class TrainAdmin {
 public:
  // Longer than the longest time for which the run waits for its servers' answers.
  static constexpr absl::Duration kUpdateLimit = absl::Seconds(90);

  // Listens on ADDRESS. CLOCK must outlive the TrainAdmin. PRICE_PER_GB: see Traffic. Errors: those
  // of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<TrainAdmin>> Start(const std::string& address,
                                                           const JobConfig& config, Clock& clock,
                                                           double price_per_gb = 0);

  const std::string& address() const { return http_->address(); }

  // Shows RECORD and the newest replies of the servers from now on.
  void Update(const RunRecord& record, const std::vector<StatusReply>& replies)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Return the pages.
  HttpReply Page() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply StatusJson() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Metrics() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Healthz() const ABSL_LOCKS_EXCLUDED(mu_);
  HttpReply Readyz() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  TrainAdmin(const JobConfig& config, Clock& clock, double price_per_gb);

  Traffic traffic() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string job_;
  const bool loss_only_;  // tests have a loss and no accuracy
  Clock& clock_;
  const double price_per_gb_;
  mutable absl::Mutex mu_;
  RunRecord record_ ABSL_GUARDED_BY(mu_);
  absl::Time updated_ ABSL_GUARDED_BY(mu_);
  std::vector<ServerHistory> servers_ ABSL_GUARDED_BY(mu_);
  Curve loss_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<HttpServer> http_;  // declared last: its pages use the others
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_TRAIN_TRAIN_ADMIN_H_
