// SiteRelay is the worker of a job that stands for all workers of a site (docs/sites.md): it pushes
// the averaged gradient of each round of the site's own job, and returns the parameters that the
// servers of the upper job send. Codec, residuals, resending and rollbacks are those of its Client.
//
//   first round      join the upper job; return its parameters
//   further rounds   push; wait for the verdicts and the parameters of the next step; return them
//   no live worker   leave the upper job, which then does not wait for this site
#ifndef THINWIRE_SERVER_SITE_SITE_RELAY_H_
#define THINWIRE_SERVER_SITE_SITE_RELAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/client.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/spec/job_spec.h"
#include "common/time/executor.h"
#include "proto/job.pb.h"
#include "server/protocols/relay/round_relay.h"

namespace thinwire {

// Thread-safe.
class SiteRelay final : public RoundRelay {
 public:
  struct Options {
    // The upper job, and the number of this site in it.
    JobConfig config;
    JobSpec job;
    WorkerId worker;
    uint32_t site_workers = 1;
    std::string state_dir;  // see ClientOptions
    std::pmr::memory_resource* memory = std::pmr::get_default_resource();
  };
  // The functions are called on the relay's thread. They must not call Stop().
  struct Parts {
    std::function<std::unique_ptr<Transport>()> make_transport;
    // The relay passes on the round before step NEXT of the site. After an error it does not, and
    // fails.
    std::function<absl::Status(Step next)> passing = [](Step) { return absl::OkStatus(); };
    // The servers of the upper job have accepted the round of the last call of `passing`.
    std::function<absl::Status()> passed = [] { return absl::OkStatus(); };
    // The relay has failed: it passes no round any more.
    std::function<void(const absl::Status&)> failed;
    // The run of the site has ended: all its workers have left, after the last step, because it has
    // diverged or after `retired`, and for one lease, in which they may read the final parameters,
    // none has come back.
    std::function<void(const Departure&)> ended;
    // An operator has removed this site from the upper job: its workers must leave.
    std::function<void()> retired;
  };

  // THREADS must outlive the relay.
  SiteRelay(Options options, Parts parts, ExecutorFactory& threads);
  // Calls Stop().
  ~SiteRelay() override;

  void Pass(RelayedRound round, std::function<void(const TensorValues&)> done) override;
  void Pause(const Departure& departure) override;

  // Completes the pushes of the round that is under way, as Client::Stop does, leaves the upper job,
  // and returns. No function of the parts and no `done` is called later. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Done = std::function<void(const TensorValues&)>;

  // The private functions run on the thread of loop_.
  void PassNow(const RelayedRound& round, const Done& done);
  // Joins the upper job as a new process, and waits for its parameters.
  absl::Status JoinAnew(const RelayedRound& round);
  // Joins, also after a rollback, and waits for the parameters.
  absl::Status Join();
  absl::Status Push(const RelayedRound& round);
  absl::Status MakeClient(const JoinRequest& join);
  void Leave(const Departure& departure);
  TensorValues Replica() const;

  const Options options_;
  const Parts parts_;
  ExecutorFactory& threads_;

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  Client* stoppable_ ABSL_GUARDED_BY(mu_) = nullptr;  // client_

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Client> client_;           // null while the site is not in the upper job
  std::vector<std::vector<float>> initial_;  // the values of the first round
  Step next_;                                // the next step of the upper job
  bool pushed_ = false;                      // the servers have the gradient of the present round
  bool retired_ = false;

  const std::unique_ptr<Executor> loop_;  // last: its tasks use the other members
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_SITE_SITE_RELAY_H_
