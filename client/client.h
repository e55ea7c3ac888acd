// Client: pushes the gradients of a whole model to the servers and reads its parameters. It splits
// tensors into shards, pushes shards while the backward pass still runs, sends unanswered pushes
// again after a reconnect, decodes parameters into the replica, waits for a server that is started
// again with its state, follows servers that continue from an earlier step, and reports a server
// that does not return as an error that names it.
//
//   auto client = Client::Make(options, tensors, transport, threads);
//   // The model uses replica(i) as the memory of its tensor i.
//   Step step = client->Join(initial);
//   while (step < last) {             // with options.works_ahead: Settle() before Leave()
//     client->BeginStep(step, examples);
//     for each layer, first to last:   client->WaitTensor(i);  forward
//     for each layer, last to first:   backward;  client->Ready(i, gradient)
//     client->EndStep();               // blocks until every gradient is encoded
//     step = client->NextStep();       // step + 1; a larger step if a push was late
//   }
//   client->Leave();
//   client->masters().Read();         // optional: the exact final parameters
//
// If a call fails and rolled_back() returns true, the servers continue from an earlier step: call
// Join again and go on with the step that it returns. Everything beside the training loop is a part
// of the client (client/parts/): fragments(), deals(), members(), state(), draining(), masters() and
// trials().
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

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/encode/device.h"
#include "client/encode/gradient.h"
#include "client/options/client_options.h"
#include "client/parts/core_thread.h"
#include "client/parts/deals.h"
#include "client/parts/draining.h"
#include "client/parts/fragments.h"
#include "client/parts/masters.h"
#include "client/parts/members.h"
#include "client/parts/state_saver.h"
#include "client/parts/trials.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/executor.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

class Client {
 public:
  // THREADS makes the client's executors and is its clock. If DEVICE is not null, the tensors are
  // in the device's memory. TRANSPORT, THREADS and DEVICE must outlive the client. Errors:
  // InvalidArgument for options or tensors that describe no valid partition, codec or number of
  // fragments; errors of the device.
  static absl::StatusOr<std::unique_ptr<Client>> Make(ClientOptions options,
                                                      std::vector<TensorShape> tensors,
                                                      Transport& transport,
                                                      ExecutorFactory& threads,
                                                      const Device* device = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Partition& partition() const { return thread_.partition; }
  // Returns the device; null if the tensors are in the host's memory.
  const Device* device() const { return thread_.device; }
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
  // damaged), Unavailable or DeadlineExceeded with the server's name after `start_timeout` (never if
  // `wait_for_servers`), after a rollback also after `server_return`, whichever is longer.
  //
  // After a rollback, the process keeps its incarnation, and the replica keeps its addresses.
  // Pushes without a verdict are dropped. The residuals, which belong to a later step, are replaced
  // by those that were saved before the returned step, or dropped.
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);
  // Returns true if the client has failed because the servers of a job with rounds continue from an
  // earlier step. Join may then be called again. Thread-safe.
  bool rolled_back() const;

  // Starts a step. EXAMPLES is the weight of the step's pushes; a push of weight 0 has no values.
  // SCALE is the factor that the caller has multiplied the gradients by. The client divides the
  // gradients by SCALE before any other operation; the division is exact if SCALE is a power of
  // two. RATE_FACTOR, finite and not negative, multiplies the learning rate of the servers' update;
  // an update with several gradients uses the mean of theirs, weighted by EXAMPLES. REQUIRES: STEP
  // is the last result of Join or NextStep.
  void BeginStep(Step step, uint32_t examples, float scale = 1, float rate_factor = 1);

  // Blocks until the tensor's parameters for the current step are in the replica. Errors:
  // Unavailable or DeadlineExceeded "server 1 (host:port): ..." if a server did not respond for
  // longer than `silence` and `server_return`; AlreadyExists if another process took the worker's
  // number; Aborted if a server lost the job's state, or the servers continue from an earlier step.
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

  // Returns the next step. Blocks until the servers have answered every push with a verdict
  // (accepted, late, ...). With `works_ahead`, returns earlier if the servers permit it: the next
  // step then uses older parameters, and Settle waits for the verdicts.
  absl::StatusOr<Step> NextStep();

  // Blocks until every push of the earlier steps has its verdict, and returns the next step, which
  // is later than that of NextStep if a push was late. It waits for the newest parameters.
  // With `works_ahead`, call Settle before Leave, before a test of the model, and before functions
  // of the parts that save the state, empty the residual or read the parameters. REQUIRES: between
  // BeginStep and NextStep, called only if Ready was not called.
  absl::StatusOr<Step> Settle();

  // Ends the waits of the training thread early, so that the worker can leave within `drain`, for
  // example after SIGTERM. Join, WaitTensor and WaitAll return Cancelled instead of blocking.
  // EndStep and NextStep continue for most of `drain` and then return Cancelled, so that a step
  // whose pushes the servers accept in this time is complete. Leave calls every server only once.
  // Idempotent. Thread-safe.
  void Stop();

  // Leaves every server; does nothing if Join has joined none. Calls every server once, all at the
  // same time, and then calls unreachable servers again for `silence`, except after a failure or
  // Stop: Leave then returns within two seconds. Returns the client's failure, if there is one, or
  // the error of a server that could not be left. REQUIRES: between BeginStep and NextStep, called
  // only after an error.
  absl::Status Leave(const LeaveReason& reason = {});

  // From now on, WaitTensor, WaitAll, EndStep and NextStep call GOES_ON about every 50 ms while they
  // block, and end with Cancelled when it returns false. GOES_ON may call Stop. REQUIRES: called
  // before Join.
  void SetWaitCheck(std::function<bool()> goes_on);

  // Blocks for DURATION, or until Stop.
  void Pause(absl::Duration duration);

  client::Fragments& fragments() { return fragments_; }
  client::Deals& deals() { return deals_; }
  client::Members& members() { return members_; }
  const client::Members& members() const { return members_; }
  client::StateSaver& state() { return state_; }
  client::Draining& draining() { return draining_; }
  client::Masters& masters() { return masters_; }
  client::Trials& trials() { return trials_; }

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

  client::CoreThread thread_;
  client::Fragments fragments_{thread_};
  client::Deals deals_{thread_};
  client::Members members_{thread_};
  client::StateSaver state_{thread_};
  client::Draining draining_{thread_};
  client::Masters masters_{thread_};
  client::Trials trials_{thread_};
  // Waits for gradients that the device still computes; null without a device.
  std::unique_ptr<Executor> gradient_loop_;
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_CLIENT_H_
