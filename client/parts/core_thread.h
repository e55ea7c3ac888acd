// CoreThread: a ClientCore on an executor of its own, and the training thread's waits for it. Client
// and its parts share one.
#ifndef THINWIRE_CLIENT_PARTS_CORE_THREAD_H_
#define THINWIRE_CLIENT_PARTS_CORE_THREAD_H_

#include <atomic>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/core/client_core.h"
#include "client/encode/device.h"
#include "client/exchange/step_progress.h"
#include "client/options/client_options.h"
#include "client/transport/stop_signal.h"
#include "client/transport/transport.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/time/executor.h"

namespace thinwire::client {

// The training thread uses the members, and the core through tasks of its loop. The loop writes the
// replica and the training thread reads it; progress ensures that both never access the same shard
// at the same time.
class CoreThread {
 public:
  // Init makes the core. TRANSPORT, THREADS and DEVICE must outlive this object.
  CoreThread(ClientOptions options, Partition partition, Transport& transport,
             ExecutorFactory& threads, const Device* device);
  ~CoreThread();
  CoreThread(const CoreThread&) = delete;
  CoreThread& operator=(const CoreThread&) = delete;
  // Errors: those of ClientCore::Make.
  absl::Status Init();

  // Calls START(done) in a task of the loop, blocks until DONE(result) is called, and returns the
  // result.
  template <typename Result, typename Start>
  Result Await(Start start) {
    Result result;
    absl::Notification finished;
    loop->Post([&] {
      start([&](Result outcome) {
        result = std::move(outcome);
        finished.Notify();
      });
    });
    finished.WaitForNotification();
    return result;
  }

  // Calls READY(timeout), which blocks for that time at most, until it returns true; the first time
  // without a timeout, and BETWEEN after each call that returned false. Errors: the client's
  // failure; Cancelled "stopped while waiting for ABOUT" after Stop.
  absl::Status WaitUntil(absl::FunctionRef<bool(absl::Duration)> ready, absl::string_view about,
                         absl::FunctionRef<void()> between);

  // Returns the result of WAIT, a wait of the training thread, and counts its time by its cause, the
  // field FIELD_NUMBER of WorkerCounters (StatusReport::EndWait).
  absl::Status CountWait(int field_number, absl::FunctionRef<absl::Status()> wait);
  // Tells the lead that this worker was asked to stop, and begins no step from STEP on by itself.
  void ReportStop(Step step);
  // Returns whether a server has not yet reported which pushed values gTop-k selected.
  bool ReturnsPending();
  // Errors: FailedPrecondition if Ready was called in a step whose pushes have no verdicts yet.
  absl::Status CheckStepIsComplete() const;

  const ClientOptions options;
  const Partition partition;
  Transport& transport;
  ExecutorFactory& threads;
  const Device* const device;
  const std::shared_ptr<StopSignal> stop;  // shared with pending calls of the transport
  StepProgress progress;
  const std::shared_ptr<Executor> loop;
  std::unique_ptr<ClientCore> core;
  Step next;  // the last result of Join or NextStep
  // True from the first call of Ready in a step until NextStep or Settle has returned and all pushes
  // have verdicts.
  std::atomic<bool> step_is_partial = false;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_PARTS_CORE_THREAD_H_
