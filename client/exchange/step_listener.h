// StepListener: hears what a client's event loop has done for the worker's steps.
#ifndef THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_
#define THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace thinwire::client {

// Tasks of the event loop call the functions.
class StepListener {
 public:
  virtual ~StepListener() = default;

  // The parameters of SHARD are requested and have not arrived. May be called again before they
  // arrive.
  virtual void OnShardExpected(ShardId shard) = 0;
  // The parameters of SHARD are in the replica.
  virtual void OnShardArrived(ShardId shard) = 0;
  // Every gradient of the current step is encoded.
  virtual void OnStepEncoded() = 0;
  // Every push of the current step has its verdict. NEXT is the next step to run.
  virtual void OnStepJudged(Step next) = 0;
  // The client has failed. FAILURE is not OK. May be followed by further calls, which change
  // nothing.
  virtual void OnFailure(absl::Status failure) = 0;
  // The servers continue from an earlier step under GENERATION, so the worker must join again. May
  // be followed by further calls, which change nothing.
  virtual void OnRollback(Generation generation) = 0;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_STEP_LISTENER_H_
