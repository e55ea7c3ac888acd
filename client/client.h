// Client: pushes the gradients of a whole model to the servers and reads its parameters. It splits
// tensors into shards, pushes shards while the backward pass still runs, sends unanswered pushes
// again after a reconnect, decodes parameters into the replica, and reports a server that stops
// responding as an error that names it.
//
//   auto client = Client::Make(options, tensors, transport);   // bind the model to replica(i)
//   Step step = client->Join(initial);
//   while (step < last) {
//     client->BeginStep(step, examples);
//     for each layer, first to last:   client->WaitTensor(i);  forward
//     for each layer, last to first:   backward;  client->Ready(i, gradient)
//     client->EndStep();               // every gradient is encoded
//     step = client->NextStep();       // step + 1; more if a push was late
//   }
//   client->Leave();
//
// With a Device, gradients and the replica are in the device's memory, and only messages are in the
// host's. Work launched on the device after WaitTensor returns may read the tensor's parameters.
//
// The replica's addresses never change. The client decodes parameters of the next step into the
// replica when they arrive, but a shard's only after its gradient is encoded. So the values of a
// tensor do not change from WaitTensor until its gradient is given to Ready.
//
// Not thread-safe, except the functions marked "Thread-safe". One thread trains; the client's own
// threads send and receive. docs/client.md explains more.
#ifndef THINWIRE_CLIENT_CLIENT_H_
#define THINWIRE_CLIENT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/device.h"
#include "client/encode/gradient.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

namespace client {
class CodecTuner;
class EventLoop;
class Exchange;
class PushEncoder;
class Replica;
class StatusReport;
class StepProgress;
struct SavedResiduals;
}  // namespace client

class Client {
 public:
  // If DEVICE is not null, the tensors are in its memory. TRANSPORT and DEVICE must outlive the
  // client. Errors: InvalidArgument for options or tensors that describe no valid partition or
  // codec; the device's.
  static absl::StatusOr<std::unique_ptr<Client>> Make(ClientOptions options,
                                                      std::vector<TensorShape> tensors,
                                                      Transport& transport,
                                                      const Device* device = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Partition& partition() const { return partition_; }
  // Returns the device; null if the tensors are in the host's memory.
  const Device* device() const { return device_; }
  // Returns the parameters of one tensor, row-major.
  std::span<float> replica(uint32_t tensor);

  // Joins every server, sends the values INITIAL (one span per tensor) to shards without values,
  // and requests the parameters, for which WaitTensor waits. Call once. Returns the first step: 0
  // in a new job; after a restart, a step that no other worker is ahead of. Errors:
  // FailedPrecondition (another model or job, or a residual file of another worker), AlreadyExists
  // (the worker's number is in use), InvalidArgument (a number outside the job), DataLoss (a
  // damaged residual file), Unavailable or DeadlineExceeded with the server's name.
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);

  // Starts a step. EXAMPLES is the weight of its pushes; 0 pushes no values. The gradients are
  // multiplied by SCALE, which the client divides out first; exactly, if SCALE is a power of two.
  // REQUIRES: STEP is the last result of Join or NextStep.
  void BeginStep(Step step, uint32_t examples, float scale = 1);

  // Blocks until the tensor's parameters for the current step are in the replica. Errors:
  // Unavailable or DeadlineExceeded "server 1 (host:port): ..."; Aborted if another process took
  // the worker's number or the job's state was lost.
  absl::Status WaitTensor(uint32_t tensor);
  // Blocks until all tensors' parameters are in the replica. Errors as above.
  absl::Status WaitAll();

  // Takes the final gradient of TENSOR, which must stay valid until EndStep returns. Call once per
  // tensor and step. The gradient is where the replica is, and is not read in steps of weight 0.
  // If OWNER is set, it keeps the gradient alive, and the client may send the gradient from its
  // memory without a copy. Then the gradient must not change until NextStep returns, and the client
  // releases OWNER when it no longer reads the gradient. Thread-safe.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);
  // Takes a gradient that a device may still be computing. Thread-safe.
  void Ready(uint32_t tensor, TensorGradient gradient);

  // Blocks until every shard is encoded. Gradients without an owner may be overwritten then.
  // REQUIRES: Ready was called for every tensor.
  absl::Status EndStep();

  // Blocks until every push has its verdict. Returns the next step.
  absl::StatusOr<Step> NextStep();

  // Writes the residuals to the residual file, for the next process with this worker's number. Does
  // nothing if the options name no file. If gTop-k returns unselected values, blocks as WaitAll
  // does first. REQUIRES: joined; not between BeginStep and NextStep. Errors: the system's, with
  // the path; WaitAll's.
  absl::Status SaveResiduals();
  // Returns what Join did with the residuals of an earlier process, as text; empty if there were
  // none.
  const std::string& residual_start() const { return residual_start_; }

  // Leaves every server. REQUIRES: not between BeginStep and NextStep.
  absl::Status Leave();

  // Returns the workers with valid leases, as the lead last reported them; empty before Join.
  // Thread-safe.
  std::vector<WorkerId> live() const;
  // Returns the workers that this worker waits for, as text: "step 41: waits for worker 3 (shards
  // 0-7)"; empty if it waits for none. Thread-safe.
  std::string waiting() const;
  // Returns the current push codec of each group of tensors; empty unless codecs are chosen at run
  // time. Thread-safe.
  std::vector<GroupCodec> choices() const;
  // Returns the counters since the client was made. Does not set overflowed_steps, which the worker
  // counts. Thread-safe.
  WorkerCounters counters() const;

 private:
  Client(ClientOptions options, Partition partition, Transport& transport, const Device* device);

  absl::Status Init();
  absl::Status MakeEncoder();
  absl::Status MakeReplica();
  // Returns nullopt if the options name no file or there is none yet.
  absl::StatusOr<std::optional<client::SavedResiduals>> ReadSavedResiduals() const;
  absl::Status StartResiduals(std::optional<client::SavedResiduals> saved,
                              std::span<const JoinReply> replies, Step first);
  absl::Status StartExchange(const std::vector<JoinReply>& replies);

  // The training thread uses these members. The loop uses the exchange, and through it the replica,
  // the encoder and the tuner; progress_ and report_ have locks of their own. The loop writes the
  // replica, and the training thread reads it, at the times that progress_ separates.
  const ClientOptions options_;
  const Partition partition_;
  Transport& transport_;
  const Device* const device_;
  SteadyClock clock_;
  std::unique_ptr<client::StepProgress> progress_;
  std::unique_ptr<client::StatusReport> report_;
  std::unique_ptr<client::Replica> replica_;
  std::unique_ptr<client::CodecTuner> tuner_;  // null unless codecs are chosen at run time
  std::unique_ptr<client::PushEncoder> encoder_;
  // Null before Join.
  std::shared_ptr<client::EventLoop> loop_;
  std::unique_ptr<client::Exchange> exchange_;
  // Waits for gradients that the device still computes. Null before Join and without a device.
  std::unique_ptr<client::EventLoop> gradient_loop_;
  Incarnation incarnation_;
  std::string residual_start_;
  Step next_;  // the last result of Join or NextStep
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_CLIENT_H_
