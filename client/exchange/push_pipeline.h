// PushPipeline: processes gradients from the training thread until the servers have answered the
// pushes with verdicts (accepted, late, ...).
//
//   Ready: gradient of a tensor
//     -> GradientClip       if the norm is limited, waits until all tensors are ready
//     -> StepGradients      yields shards in the order of all workers
//     -> PushEncoder        one shard per task of the loop
//     -> SendQueue          the queue of the shard's server
//   OnVerdict: verdict of a shard
//     -> PushEncoder        adds the values of a late push to the residual
//     -> GtopkReturns       keeps an accepted push if gTop-k returns unselected values
//     -> StepVerdicts       all verdicts of a step; a late push determines the next step
//
// The training thread may begin the next step while earlier ones lack verdicts, as many as the
// newest answer to a read permits (read_path.h), but not before the pushes of the steps before the
// current one are sent: more steps would only make the queues longer.
//
// The pipeline encodes one shard per task, so that messages from servers, which are tasks of the
// same loop, do not wait for a whole model. It encodes at most one message ahead of the network, so
// the bytes to send are still in the CPU's cache, and buffers of a few messages are enough for a
// whole model. If gradients are on a device, the pipeline begins the next shard before it waits for
// the previous one.
#ifndef THINWIRE_CLIENT_EXCHANGE_PUSH_PIPELINE_H_
#define THINWIRE_CLIENT_EXCHANGE_PUSH_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/gradient_clip.h"
#include "client/encode/push_encoder.h"
#include "client/exchange/exchange_parts.h"
#include "client/exchange/gtopk_returns.h"
#include "client/exchange/push_spans.h"
#include "client/exchange/read_path.h"
#include "client/exchange/server_link.h"
#include "client/exchange/step_gradients.h"
#include "client/exchange/step_verdicts.h"
#include "common/base/ids.h"
#include "common/time/task_scope.h"
#include "proto/frame.h"

namespace thinwire::client {

// Lives on the event loop `parts.loop`: only tasks of this loop call the functions of PushPipeline.
class PushPipeline {
 public:
  // LINKS: one link per server, indexed by server number. FAIL ends the exchange. All arguments
  // must outlive this object.
  PushPipeline(const ExchangeParts& parts, const std::vector<std::unique_ptr<ServerLink>>& links,
               ReadPath& reads, GtopkReturns& returns, std::function<void(absl::Status)> fail);

  // Sets the first step. Call once, before BeginStep.
  void Start(Step first) { next_ = first; }
  // Starts a step. EXAMPLES is the weight of its pushes, SCALE the loss scale that its gradients
  // are multiplied by, and RATE_FACTOR multiplies the learning rate of their update. A step without
  // a gradient may be started again.
  void BeginStep(Step step, uint32_t examples, float scale, float rate_factor);
  // Accepts the gradient of TENSOR. OWNER, if not null, keeps the gradient alive.
  void Ready(uint32_t tensor, std::span<const float> gradient, std::shared_ptr<const void> owner);
  // Accepts the values of TENSORS, one span per tensor, for the shards of FRAGMENT. REQUIRES: the
  // norm is not limited.
  void ReadyFragment(uint32_t fragment, std::span<const std::span<const float>> tensors);
  // Continues if a send queue has room. Call this when a send queue has become shorter.
  void OnQueueRoom();
  // Handles a verdict from the server of LINK. Call ContinueIfPossible afterwards.
  void OnVerdict(ServerLink& link, const VerdictEntry& verdict);
  // Lets the worker begin the next step, if it may.
  void ContinueIfPossible();
  // Makes the pipeline ignore all gradients and verdicts from now on.
  void Stop() { stopped_ = true; }
  // Returns the first step without all verdicts.
  Step next() const { return steps_.empty() ? next_ : steps_.front().verdicts.step(); }
  // Makes the next step, which this function returns, wait for the newest parameters. REQUIRES:
  // every push has its verdict; a step that was started has no gradient.
  Step Settle();

 private:
  struct StepInFlight {
    StepVerdicts verdicts;
    PushSpans spans;
  };

  ServerLink& LinkOf(ShardId shard) { return *links_[parts_.partition.server(shard).value]; }
  bool MayBegin();
  // Posts a task that encodes a shard, if a shard may be encoded.
  void EncodeMore();
  void EncodeOneShard();
  absl::Status BeginShard();
  void Send(PushEncoder::Encoded encoded);
  void CountVerdict(const VerdictEntry& verdict);
  size_t unjudged_count() const { return steps_.size() - (has_pushes_ ? 0 : 1); }
  void FinishSteps();
  // Goes on with the step that the verdicts of late pushes demand.
  void Jump();
  void UpdateChoices();

  const ExchangeParts& parts_;
  const std::vector<std::unique_ptr<ServerLink>>& links_;
  ReadPath& reads_;
  GtopkReturns& returns_;
  const std::function<void(absl::Status)> fail_;

  const std::vector<std::vector<ShardId>> fragments_;
  StepGradients gradients_;
  GradientClip clip_;
  // The steps that lack verdicts, in ascending order, and the current one if it has no push yet.
  std::deque<StepInFlight> steps_;
  Step step_;               // the current step
  bool has_pushes_ = true;  // the current step; true before the first one
  bool encoded_ = false;    // all shards of the current step
  bool continued_ = false;  // OnNextStep was called after the current step
  // The payloads of the current step do not refer to the trainer's gradients.
  bool copies_ = false;
  Step next_;     // after the current step
  Step jump_to_;  // the largest next step after a late push
  uint32_t examples_ = 0;
  float rate_factor_ = 1;
  bool encode_posted_ = false;
  bool stopped_ = false;
  const TaskScope scope_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_PUSH_PIPELINE_H_
