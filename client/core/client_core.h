// ClientCore: a client without a thread. It never blocks: it answers calls through callbacks and
// reports what happens to a StepListener. Client (client/client.h) runs a core on a thread and lets
// a training thread wait; a simulation runs many cores on one thread in virtual time.
//
//   core->Join(initial, [](absl::StatusOr<Step> first) {...});
//   core->BeginStep(step, examples, scale);
//   core->Ready(tensor, gradient, owner);      // for each tensor
//     -> OnShardArrived, OnStepEncoded, OnNextStep(next)
//   core->Leave(reason, [](absl::Status left) {...});
//
// After OnRollback, call Join again. A disk that holds the worker's state folder is read and
// written by the loop.
#ifndef THINWIRE_CLIENT_CORE_CLIENT_CORE_H_
#define THINWIRE_CLIENT_CORE_CLIENT_CORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/core/residual_restore.h"
#include "client/encode/codec_tuner.h"
#include "client/encode/device.h"
#include "client/encode/push_encoder.h"
#include "client/encode/wire_meter.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/exchange.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/job_news.h"
#include "client/exchange/status_report.h"
#include "client/exchange/step_listener.h"
#include "client/exchange/worker_news.h"
#include "client/options/client_options.h"
#include "client/replica/replica.h"
#include "client/transport/joining.h"
#include "client/transport/leaving.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/push_spec.h"
#include "common/time/executor.h"
#include "proto/control.pb.h"

namespace thinwire::client {

// The run as the lead described it in its reply to the last Join.
struct JoinedRun {
  Incarnation incarnation;  // 0 before the first Join
  RunId run;
  // The first step of the trial in which the present generation began (Trials::first_step).
  std::optional<Step> trial;
  // The candidates of push: adaptive with which the present generation pushes.
  KindArms arms = {};
};

// Lives on the executor LOOP: only its tasks call the functions that are not marked
// "Thread-safe".
class ClientCore {
 public:
  using JoinDone = std::function<void(absl::StatusOr<Step>)>;
  using LeaveDone = std::function<void(absl::Status)>;

  // OPTIONS, PARTITION, TRANSPORT, LISTENER and DEVICE must outlive the core. LOOP is shared with
  // pending calls of the transport. Errors: InvalidArgument for options that describe no valid
  // codec; errors of the device.
  static absl::StatusOr<std::unique_ptr<ClientCore>> Make(
      const ClientOptions& options, const Partition& partition, Transport& transport,
      std::shared_ptr<Executor> loop, StepListener& listener, const Device* device = nullptr);
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  // Joins every server, uploads INITIAL to shards that have no values, and requests the parameters.
  // See Client::Join, also for the errors. DONE is called once, unless the core is destroyed first.
  // REQUIRES: INITIAL is valid until then, and no Join or Leave is in progress.
  void Join(std::span<const std::span<const float>> initial, JoinDone done);
  // Leaves the servers; see Client::Leave. DONE receives the error of a server that could not be
  // left. PATIENCE: how long unreachable servers are called again.
  void Leave(const LeaveReason& reason, absl::Duration patience, LeaveDone done);
  // From now on, Join ends with Cancelled, and Leave calls every server only once. Idempotent.
  void Stop();
  // Ends the exchange: no call of the listener follows. Idempotent.
  void StopExchange();

  // Does nothing if no exchange is running. See Client.
  void BeginStep(Step step, uint32_t examples, float scale = 1, float rate_factor = 1);
  void Ready(uint32_t tensor, std::span<const float> gradient, std::shared_ptr<const void> owner);
  void ReadyFragment(uint32_t fragment, std::span<const std::span<const float>> tensors);
  // Makes the next step wait for the newest parameters. Returns it, or nullopt without an exchange.
  // See PushPipeline::Settle.
  std::optional<Step> Settle();
  void Fail(absl::Status failure);
  // Sends a heartbeat to the lead without waiting for its time.
  void HeartbeatToLead();

  // Returns true if a Join has succeeded since the last rollback was followed.
  bool joined() const { return exchange_ != nullptr; }
  // Returns the exchange. REQUIRES: joined().
  const Exchange& exchange() const { return *exchange_; }
  const JoinedRun& joined_run() const { return joined_run_; }
  const ResidualRestore& restored() const { return restore_; }
  // Returns the objects that outlive an exchange. Thread-safe: the replica's parameters
  // (Client::replica), `report`, `worker_news`, `job_news` and `deals`.
  const ExchangeParts& parts() const { return *parts_; }

 private:
  ClientCore(const ClientOptions& options, const Partition& partition, Transport& transport,
             std::shared_ptr<Executor> loop, StepListener& listener, const Device* device);

  absl::Status Init();
  absl::Status MakeEncoder();
  absl::Status MakeReplica();
  absl::Status CheckInitial(std::span<const std::span<const float>> initial) const;
  // The parts of Join before it calls the servers and after their REPLIES.
  absl::StatusOr<JoinRequest> PrepareJoin(std::span<const std::span<const float>> initial,
                                          bool after_rollback);
  absl::StatusOr<Step> OnJoined(const JoinRequest& request, bool after_rollback,
                                absl::StatusOr<std::vector<JoinReply>> replies);
  // With push: adaptive, encodes all later pushes with the arms that the lead's REPLY names.
  absl::Status UseArms(const JoinReply& reply);
  // Drops the unfinished work of the steps from FIRST on, from which the servers continue.
  absl::Status RollBackTo(Step first);

  const ClientOptions& options_;
  const Partition& partition_;
  Transport& transport_;
  const std::shared_ptr<Executor> loop_;
  StepListener& listener_;
  const Device* const device_;
  StatusReport report_;
  WorkerNews worker_news_;
  JobNews job_news_;
  DealBook deals_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<CodecTuner> tuner_;  // null unless the client chooses codecs at run time
  std::unique_ptr<WireMeter> meter_;   // null if the tuner has the meter
  ResidualRestore restore_;            // has the memory of the encoder's residuals
  std::unique_ptr<PushEncoder> encoder_;
  std::optional<const ExchangeParts> parts_;  // set by Init
  bool stopped_ = false;
  std::unique_ptr<Joining> joining_;  // null unless a Join is in progress
  std::unique_ptr<Leaving> leaving_;
  std::unique_ptr<Exchange> exchange_;
  JoinedRun joined_run_;
  Step next_;  // at the last rollback, the next step before it
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_CORE_CLIENT_CORE_H_
