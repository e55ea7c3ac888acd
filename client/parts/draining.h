// Draining: the part of a client that a stopped worker uses so that no gradient is lost.
//
//   client->Stop();
//   if (const auto stop = client->draining().AwaitCommonStop(longest); stop.ok() && *stop) {
//     // all workers stop: run the steps below **stop, then client->state().Save()
//   } else if (client->draining().Start(compute_time).value_or(false)) {
//     // run one more step, which empties the residual
//   }
//   client->Leave();
#ifndef THINWIRE_CLIENT_PARTS_DRAINING_H_
#define THINWIRE_CLIENT_PARTS_DRAINING_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/parts/core_thread.h"
#include "common/base/ids.h"

namespace thinwire::client {

class Draining {
 public:
  explicit Draining(CoreThread& thread) : thread_(thread) {}

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
  // with Cancelled may be begun again. COMPUTE_TIME is the usual time of a step. HAS_UNPUSHED: the
  // caller has values that the step shall push, also if no residual is left. Returns false if
  // nothing is left or the time is too short. REQUIRES: Join and Stop were called; between
  // BeginStep and NextStep, called only if Ready was not called.
  absl::StatusOr<bool> Start(absl::Duration compute_time, bool has_unpushed = false);
  // Returns the L1 norm of the residuals and of the pushes without a verdict: gradient values that
  // no server is known to have. If a server has not yet reported which pushed values gTop-k
  // selected, first calls WaitAll. Errors: those of WaitAll; FailedPrecondition if an incomplete
  // step is still being encoded. REQUIRES: Join has succeeded; between BeginStep and NextStep,
  // called only after an error.
  absl::StatusOr<double> ResidualNorm();

 private:
  CoreThread& thread_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_DRAINING_H_
