// Client: pushes the gradients of a whole model to the servers and reads its parameters. It splits
// tensors into shards, pushes shards while the backward pass still runs, sends unanswered pushes
// again after a reconnect, decodes parameters into the replica, waits for a server that is started
// again with its state, follows servers that continue from an earlier step, and reports a server
// that does not return as an error that names it.
//
//   auto client = Client::Make(options, tensors, transport, threads);
//   // The model uses replica(i) as the memory of its tensor i.
//   Step step = client->Join(initial);
//   while (step < last) {
//     client->BeginStep(step, examples);
//     for each layer, first to last:   client->WaitTensor(i);  forward
//     for each layer, last to first:   backward;  client->Ready(i, gradient)
//     client->EndStep();               // blocks until every gradient is encoded
//     step = client->NextStep();       // step + 1; a larger step if a push was late
//   }
//   client->Leave();
//   client->ReadMasters();            // optional: the exact final parameters
//
// If a call fails and rolled_back() returns true, the servers continue from an earlier step: call
// Join again and go on with the step that it returns. A worker with a state folder calls SaveState
// after Join and before Leave, and StartSaveState before each step for which StateIsDue().
//
// With a Device, gradients and the replica are in the device's memory; only messages are in the
// host's memory. Work that is launched on the device after WaitTensor returns may read the tensor's
// parameters.
//
// The replica's addresses never change. The client decodes the next step's parameters into the
// replica as they arrive, but decodes the parameters of a shard only after the shard's gradient is
// encoded. Therefore the parameters of a tensor do not change between WaitTensor and the call of
// Ready with the tensor's gradient.
//
// Not thread-safe, except the functions marked "Thread-safe". One thread, the training thread,
// calls the other functions; the client's own threads send and receive. Documentation:
// docs/client.md.
#ifndef THINWIRE_CLIENT_CLIENT_H_
#define THINWIRE_CLIENT_CLIENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/device.h"
#include "client/encode/gradient.h"
#include "client/encode/residual_file.h"
#include "client/options/client_options.h"
#include "client/transport/transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "common/time/executor.h"
#include "common/time/log_limit.h"
#include "proto/control.pb.h"
#include "proto/precision.pb.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

namespace client {
class ClientCore;
class StateFolder;
class StepProgress;
class StopSignal;
}  // namespace client

class Client {
 public:
  // THREADS makes the client's executors and is its clock. If DEVICE is not null, the tensors are
  // in the device's memory. TRANSPORT, THREADS and DEVICE must outlive the client. Errors:
  // InvalidArgument for options or tensors that describe no valid partition or codec; errors of the
  // device.
  static absl::StatusOr<std::unique_ptr<Client>> Make(ClientOptions options,
                                                      std::vector<TensorShape> tensors,
                                                      Transport& transport,
                                                      ExecutorFactory& threads,
                                                      const Device* device = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Partition& partition() const { return partition_; }
  // Returns the device; null if the tensors are in the host's memory.
  const Device* device() const { return device_; }
  // Returns the parameters of one tensor, row-major.
  std::span<float> replica(uint32_t tensor);

  // Joins every server, uploads INITIAL (one span of initial values per tensor) to shards that have
  // no values, and requests the parameters; WaitTensor blocks until they arrive. Call once, and
  // again after each rollback. Returns the first step to run: 0 in a new job; after a restart, a
  // step not smaller than any other live worker's step; after a rollback, the step from which the
  // servers continue. Errors: FailedPrecondition (the servers have another model or job, or the
  // saved residuals belong to another worker), AlreadyExists (the worker's number is in use, after
  // `lease`), OutOfRange (the number is above the number of workers that an operator has set),
  // InvalidArgument (no worker of this job can have this number), DataLoss (the saved residuals are
  // damaged), Unavailable or DeadlineExceeded with the server's name after `start_timeout`, after a
  // rollback also after `server_return`, whichever is longer.
  //
  // After a rollback, the process keeps its incarnation, and the replica keeps its addresses.
  // Pushes without a verdict are dropped. The residuals, which belong to a later step, are replaced
  // by those that were saved before the returned step, or dropped.
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);
  // Returns true if the client has failed because the servers of a job with rounds continue from an
  // earlier step. Join may then be called again. Thread-safe.
  bool rolled_back() const;

  // Blocks until the lead has announced all deals that begin at or before STEP, and returns the
  // deals with numbers above KNOWN. A deal that begins an epoch replaces earlier ones. A program that deals the examples of a data set among
  // the workers (docs/training.md) calls it before it chooses the examples of a step. Errors: those
  // of WaitTensor. REQUIRES: Join has succeeded.
  absl::StatusOr<std::vector<Deal>> WaitDealt(Step step, size_t known);
  // Tells the lead that the next step belongs to EPOCH of the data set, from 0, which begins at
  // BEGIN. The lead drops the deals that no epoch in progress needs. Thread-safe.
  void BeginEpoch(uint64_t epoch, Step begin);
  // Returns whether WaitDealt for STEP returns at once. Thread-safe.
  bool IsDealt(Step step) const;
  // push: adaptive: returns the first step of the trial in which the present generation of the
  // servers began; nullopt: it began without a trial. The trial may have ended since.
  std::optional<Step> trial() const;
  // Measures the encoding errors of the pushes between two calls. Stop returns the sum of the
  // squares of the errors, divided by that of the encoded values; nullopt if nothing is measured, or
  // if Join has succeeded since Start. REQUIRES: Join has succeeded; no step is begun.
  void StartErrorMeasurement();
  std::optional<double> StopErrorMeasurement();
  // Sends TEST, a test of the model within a trial, to the lead.
  void ReportTest(const PrecisionTest& test);
  // Returns true if an operator has removed this worker, which must leave between two steps.
  // Thread-safe.
  bool retired() const;

  // Starts a step. EXAMPLES is the weight of the step's pushes; a push of weight 0 has no values.
  // SCALE is the factor that the caller has multiplied the gradients by. The client divides the
  // gradients by SCALE before any other operation; the division is exact if SCALE is a power of
  // two. REQUIRES: STEP is the last result of Join or NextStep.
  void BeginStep(Step step, uint32_t examples, float scale = 1);

  // Blocks until the tensor's parameters for the current step are in the replica. Errors:
  // Unavailable or DeadlineExceeded "server 1 (host:port): ..." if a server did not respond for
  // longer than `silence` and `server_return`; Aborted if another process took the worker's number,
  // a server lost the job's state, or the servers continue from an earlier step.
  absl::Status WaitTensor(uint32_t tensor);
  // Blocks until the parameters of all tensors for the current step are in the replica. Errors:
  // those of WaitTensor.
  absl::Status WaitAll();

  // Passes the final gradient of TENSOR to the client. Call once per tensor and step. The gradient
  // is in the same memory, host or device, as the replica, and must stay valid until EndStep
  // returns. In a step of weight 0 (no examples) the client does not read the gradient. If OWNER is
  // not null, OWNER keeps the gradient alive, and the client may send the gradient directly from
  // this memory, without a copy. The gradient must then not change until NextStep returns, and the
  // client releases OWNER when it no longer reads the gradient. Thread-safe.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);
  // Passes the gradient of TENSOR, which a device may still be computing, to the client.
  // Thread-safe.
  void Ready(uint32_t tensor, TensorGradient gradient);

  // Blocks until every shard is encoded. Afterwards the caller may overwrite gradients without an
  // owner. REQUIRES: Ready was called for every tensor.
  absl::Status EndStep();

  // Blocks until the servers have answered every push with a verdict (accepted, late, ...). Returns
  // the next step.
  absl::StatusOr<Step> NextStep();

  // Ends the waits of the training thread early, so that the worker can leave within `drain`, for
  // example after SIGTERM. Join, WaitTensor and WaitAll return Cancelled instead of blocking.
  // EndStep and NextStep continue for most of `drain` and then return Cancelled, so that a step
  // whose pushes the servers accept in this time is complete. Leave calls every server only once.
  // Idempotent. Thread-safe.
  void Stop();

  // Asks the lead whether all live workers were asked to stop. If so, returns the step before which
  // all of them stop, so that the job can go on with the same bits: it may be above the next step,
  // and WaitTensor and WaitAll then block for most of `drain`, too. The worker runs the steps below
  // it and saves its state. A step that WaitTensor has ended with Cancelled may be begun again.
  // Returns nullopt if LONGEST or a half of `drain` passes first: other workers go on. Errors: those
  // of WaitTensor, except Cancelled; FailedPrecondition if Ready was called in an incomplete step.
  // REQUIRES: Join and Stop were called.
  absl::StatusOr<std::optional<Step>> AwaitCommonStop(absl::Duration longest);
  // Prepares a step that empties the residual before a stopped worker leaves. The pushes of this
  // step are fp32, or bf16 if the rest of `drain` is too short for fp32 at the measured goodput.
  // WaitTensor and WaitAll then block for most of `drain` too. A step that WaitTensor has ended
  // with Cancelled may be begun again. COMPUTE_TIME is the usual time of a step. Returns false if
  // no residual is left or the time is too short. REQUIRES: Join and Stop were called; between
  // BeginStep and NextStep, called only if Ready was not called.
  absl::StatusOr<bool> StartDraining(absl::Duration compute_time);
  // Returns the L1 norm of the residuals and of the pushes without a verdict: gradient values that
  // no server is known to have. If a server has not yet reported which pushed values gTop-k
  // selected, first calls WaitAll. Errors: those of WaitAll; FailedPrecondition if an incomplete
  // step is still being encoded. REQUIRES: Join has succeeded; between BeginStep and NextStep,
  // called only after an error.
  absl::StatusOr<double> ResidualNorm();

  // Writes a file of the caller's own. PATH is the path of the residual file, with which the file's
  // path begins.
  using WriteBeside = std::function<absl::Status(const std::string& path)>;
  // Saves the residuals before the next step in the state folder, for the next process with this
  // worker's number and for rollbacks. First calls BESIDE, unless it is null. Does nothing without
  // a state folder. If a server has not yet reported which pushed values gTop-k selected, first
  // calls WaitAll. REQUIRES: between BeginStep and NextStep, called only after an error. Errors:
  // errors of the file system, with the path; errors of WaitAll and BESIDE; FailedPrecondition if
  // no server is joined, or if Ready was called in an incomplete step, because the residuals may
  // then lack values of pushes that no server has received.
  absl::Status SaveState(const WriteBeside& beside = nullptr);
  // Copies the residuals and returns. A thread of the client then calls BESIDE and writes the
  // residuals. If writing fails, the thread logs the error, and the files of earlier steps remain.
  // REQUIRES: as SaveState. Errors: those of SaveState, except errors of writing; Unavailable if an
  // earlier state is still being written.
  absl::Status StartSaveState(WriteBeside beside = nullptr);
  // Returns true if the worker has a state folder and the servers make a checkpoint of the next
  // step: the worker saves its state before BeginStep.
  bool StateIsDue() const;
  // Returns the state folder; null before Join and without a state folder.
  const client::StateFolder* state_folder() const;
  // Returns a text that says whether the last Join restored saved residuals, and why. The text is
  // empty if the worker has no state folder and no residuals are lost.
  const std::string& residual_start() const;

  // Leaves every server; does nothing if Join has joined none. Calls every server once, all at the
  // same time, and then calls unreachable servers again for `silence`, except after a failure or
  // Stop: Leave then returns within two seconds. Returns the client's failure, if there is one, or
  // the error of a server that could not be left. FINISHED: the job has no later step, so the lead
  // appoints no other evaluator. REQUIRES: between BeginStep and NextStep, called only after an
  // error.
  absl::Status Leave(bool finished = false);

  // Blocks until every server reports that no other worker is live: the others have left, or their
  // leases have expired. waiting() names the other workers meanwhile. Errors: those of
  // WaitTensor. REQUIRES: Join has succeeded; not called between BeginStep and NextStep.
  absl::Status WaitUntilAlone();
  // Reads the exact fp32 parameters from the servers, as one row-major array per tensor. After the
  // Leave of the last live worker they are final. Before Leave, in mode sync they are those of one
  // step if WaitAll has returned and BeginStep has not been called since: no round closes without
  // this worker's pushes. In the other modes the shards may be at different versions. Errors: those
  // of the first server that does not answer for the longer of `silence` and `server_return`;
  // DataLoss if a value is missing or arrives twice; Cancelled after Stop. REQUIRES: not called
  // between BeginStep and NextStep.
  absl::StatusOr<std::vector<std::vector<float>>> ReadMasters();
  // Like ReadMasters, but reads the moving averages of the parameters (`parameter_average`). In a
  // job without averages, these are the parameters.
  absl::StatusOr<std::vector<std::vector<float>>> ReadAverages();

  // Blocks for DURATION, or until Stop.
  void Pause(absl::Duration duration);

  // Returns the evaluator, which the lead appoints when the first worker has finished a step, and
  // anew if it is lost or leaves before the last step. Blocks until the lead has named it. Errors:
  // those of WaitTensor. REQUIRES: Join has succeeded.
  absl::StatusOr<WorkerId> Evaluator();
  // Blocks until server 0 has answered a heartbeat that was sent after this call, so that live()
  // has every worker that joined before. Errors: those of WaitTensor. REQUIRES: Join has succeeded.
  absl::Status RefreshLive();
  // Returns the workers with valid leases, from the last heartbeat reply of server 0; empty before
  // Join. Thread-safe.
  std::vector<WorkerId> live() const;
  // Returns a text that names the workers for which this worker waits, "step 41: waits for worker 3
  // (shards 0-7)", or a server that does not respond, "waiting for server 0 (10.0.0.7:7000):
  // connection refused"; empty if this worker does not wait. Thread-safe.
  std::string waiting() const;
  // Returns the current push codec of each group of tensors; empty unless the client chooses codecs
  // at run time. Thread-safe.
  std::vector<GroupCodec> choices() const;
  // Returns the client's counters, which start at zero when the client is made. The client does not
  // change the counter overflowed_steps, because the worker program counts these steps.
  // Thread-safe.
  WorkerCounters counters() const;

 private:
  Client(ClientOptions options, Partition partition, Transport& transport, ExecutorFactory& threads,
         const Device* device);

  absl::Status Init();
  // Calls START(done) in a task of the loop, and blocks until DONE(result) is called.
  template <typename Result, typename Start>
  Result WaitForCore(Start start);
  absl::StatusOr<std::vector<std::vector<float>>> ReadFromServers(const MastersRequest& request);
  // Returns the result of WAIT, a wait of the training thread, and counts its time by its cause
  // (StatusReport::EndWait).
  template <typename Wait>
  auto CountWait(int field_number, Wait wait);
  // Returns whether a server has not yet reported which pushed values gTop-k selected.
  bool ReturnsPending();
  // Returns the residuals before the next step. They are valid until the encoder is used again.
  absl::StatusOr<std::vector<client::ShardResidualsView>> CurrentResiduals();
  // Writes the state before POINT.step, as SaveState does.
  absl::Status WriteState(const client::ResidualPoint& point,
                          std::span<const client::ShardResidualsView> residuals,
                          const WriteBeside& beside) const;

  // The training thread uses the members below, and the core through tasks of its loop. The loop
  // writes the replica and the training thread reads it; progress_ ensures that both never access
  // the same shard at the same time.
  const ClientOptions options_;
  const Partition partition_;
  Transport& transport_;
  ExecutorFactory& threads_;
  const Device* const device_;
  const std::shared_ptr<client::StopSignal> stop_;  // shared with pending calls of the transport
  std::unique_ptr<client::StepProgress> progress_;
  const std::shared_ptr<Executor> loop_;  // the event loop
  std::unique_ptr<client::ClientCore> core_;
  // Waits for gradients that the device still computes; null without a device.
  std::unique_ptr<Executor> gradient_loop_;
  std::unique_ptr<Executor> writer_;              // writes states; null without a state folder
  LogLimit failure_lines_{10, absl::Minutes(1)};  // about states that were not saved
  std::atomic<bool> writing_ = false;  // true until the state of StartSaveState is written
  Step next_;                          // the last result of Join or NextStep
  // True from the first call of Ready in a step until NextStep has returned.
  std::atomic<bool> step_is_partial_ = false;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_CLIENT_H_
