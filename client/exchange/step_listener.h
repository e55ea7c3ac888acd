// StepListener: hears what a client's event loop has done for the worker's steps.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace thinwire::client {

// Tasks of the event loop call the functions.
class StepListener {
 public:
  virtual ~StepListener() = default;

  // The parameters of SHARD for the next step are requested and have not arrived. May be called
  // again before they arrive.
  virtual void OnShardExpected(ShardId shard) = 0;
  // Parameters of SHARD have arrived while the worker may be computing. Returns whether they may
  // change the replica now: the worker does not use the shard until OnShardArrived is called.
  virtual bool OnShardChanging(ShardId shard) = 0;
  // Parameters of SHARD that may be used for the next step are in the replica.
  virtual void OnShardArrived(ShardId shard) = 0;
  // The gradient of SHARD is encoded, so the current step no longer uses its parameters.
  virtual void OnShardEncoded(ShardId shard) = 0;
  // COUNT steps have pushes that lack verdicts.
  virtual void OnUnjudged(size_t count) = 0;
  // Every gradient of the current step is encoded.
  virtual void OnStepEncoded() = 0;
  // The worker may run the step NEXT. Called once per step, after OnStepEncoded.
  virtual void OnNextStep(Step next) = 0;
  // The client has failed. FAILURE is not OK. May be followed by further calls, which change
  // nothing.
  virtual void OnFailure(absl::Status failure) = 0;
  // The servers continue from an earlier step under GENERATION, so the worker must join again. May
  // be followed by further calls, which change nothing.
  virtual void OnRollback(Generation generation) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_
