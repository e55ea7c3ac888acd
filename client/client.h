// Client: push and read of a whole model, as a trainer sees it. It splits tensors into shards,
// sends them in the partition's order while backward still runs, resends after a reconnect, merges
// what comes back into the replica, and turns every silence into an error that names the server.
//
//   auto client = Client::Make(options, tensors, transport);   // bind the model to replica(i)
//   Step step = client->Join(initial);
//   while (step < last) {
//     client->BeginStep(step, examples);
//     for each layer, first to last:   client->WaitTensor(i);  forward
//     for each layer, last to first:   backward;  client->Ready(i, gradient)
//     client->EndStep();               // every gradient is encoded
//     step = client->NextStep();       // every verdict is in: step + 1, after a late push more
//   }
//   client->Leave();
//
// With a Device gradients come from there, and the replica lies there: the host's memory holds what
// the wire does. Then a tensor's parameters may be read by whatever is launched after WaitTensor.
//
// The replica's memory stays where it is for the client's life. Parameters of the next step are
// decoded into it as they come, a shard only after its own gradient is encoded; so a layer's values
// may change once its gradient is given to Ready, and stand still from WaitTensor until then.
//
// One thread trains; the client's own threads send and receive. Thread-safe only where said.
#ifndef THINWIRE_CLIENT_CLIENT_H_
#define THINWIRE_CLIENT_CLIENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/device.h"
#include "client/options.h"
#include "client/tensor_gradient.h"
#include "client/transport.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

class Client {
 public:
  // With a DEVICE, which outlives the client, the tensors lie there. Errors: InvalidArgument for
  // options or tensors that make no partition or codec; the device's.
  static absl::StatusOr<std::unique_ptr<Client>> Make(ClientOptions options,
                                                      std::vector<TensorShape> tensors,
                                                      Transport& transport,
                                                      const Device* device = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Partition& partition() const;
  // Where the tensors lie; null: in the host's memory.
  const Device* device() const;
  // The parameters of one tensor, row-major.
  std::span<float> replica(uint32_t tensor);

  // Joins every server, seeds what has no values with INITIAL (one span per tensor), and reads.
  // Returns the step to begin with: 0 in a new job, one ahead of everybody after a restart. The
  // parameters come; WaitTensor waits for them. Errors: FailedPrecondition (another model, another
  // job, another's residual file), AlreadyExists (the worker's number is in use), InvalidArgument
  // (a number the job does not have), DataLoss (a damaged residual file), Unavailable or
  // DeadlineExceeded naming the server.
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);

  // REQUIRES: step is the last one that Join or NextStep returned. EXAMPLES is the weight of every
  // push of this step. Its gradients come SCALE times as large as they are; that is taken out
  // before anything else, exactly where it is a power of two.
  void BeginStep(Step step, uint32_t examples, float scale = 1);

  // Returns when the tensor's parameters for the step at hand are in the replica. Errors:
  // Unavailable or DeadlineExceeded "server 1 (host:port) ...", Aborted (fenced, or the job's state
  // was lost).
  absl::Status WaitTensor(uint32_t tensor);
  // The same for all tensors.
  absl::Status WaitAll();

  // The tensor's gradient is final and stays valid until EndStep returns. Thread-safe; once per
  // tensor and step. With an OWNER, who keeps its memory alive, it may be sent from where it lies:
  // then it also stands still until NextStep returns, and is let go when nobody reads it any more.
  // It lies where the replica does; of a step of weight 0 it is not read.
  void Ready(uint32_t tensor, std::span<const float> gradient,
             std::shared_ptr<const void> owner = nullptr);
  // The same of a gradient that a device may still be computing.
  void Ready(uint32_t tensor, TensorGradient gradient);

  // Returns when every shard is encoded, and what has no owner may be written again. REQUIRES:
  // Ready was called for every tensor.
  absl::Status EndStep();

  // Returns when every push has its verdict: the step to do next.
  absl::StatusOr<Step> NextStep();

  // Writes what this worker owes to the residual file, for the next process of its number to go on
  // with; nothing where none was asked for. Where a selection gives the rest back to the workers it
  // first waits as WaitAll does. REQUIRES: it has joined; no step is between BeginStep and
  // NextStep. Errors: the system's, with the path; WaitAll's.
  absl::Status SaveResiduals() const;
  // What became at Join of an earlier process's residuals, for a person; empty if there is nothing
  // to say.
  const std::string& residual_start() const;

  // Leaves every server; REQUIRES: no step is between BeginStep and NextStep.
  absl::Status Leave();

  // The workers whose leases hold, as the lead last said; empty before Join. Thread-safe.
  std::vector<WorkerId> live() const;
  // Empty, or whom this worker waits for, for a person: "step 41: waits for worker 3 (shards 0-7)".
  // Thread-safe.
  std::string waiting() const;
  // What the groups of tensors are pushed in now, where that is chosen; else empty. Thread-safe.
  std::vector<GroupCodec> choices() const;
  // The counters since the client was made, without those that the worker adds (overflowed_steps).
  // Thread-safe.
  WorkerCounters counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;

  explicit Client(std::unique_ptr<State> state);
};

}  // namespace thinwire

#endif  // THINWIRE_CLIENT_CLIENT_H_
