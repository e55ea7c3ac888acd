// PyClient: the class Client of the Python module thinwire._client, which has the calls of
// client/client.h. client_class.cc describes them.
//
//   threads   The Python thread releases the GIL while it waits, and wakes up every 50 ms to handle
//             signals, so Ctrl-C ends a wait. The waits of a step run on the Python thread itself,
//             all other ones on the client's caller thread (docs/decisions/0179). No thread of the
//             client takes the GIL or frees a Python object.
//   memory    Arrays of the replica refer to the client's memory and keep the client alive. The
//             client reads gradients where they are; this class keeps them alive until the step
//             is encoded.
//   fork      Only the process that made a client can use it: a child has none of its threads.
//   errors    A failed call raises thinwire.Error or a subclass, with the status message as text.
#ifndef THINWIRE_PYTHON_PY_CLIENT_H_
#define THINWIRE_PYTHON_PY_CLIENT_H_

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "common/base/ids.h"
#include "common/time/thread_executor.h"
#include "python/arrays.h"
#include "python/job_settings.h"
#include "python/owned_client.h"

namespace thinwire {

// A name, a list of values, and the place for messages.
using Setting = std::tuple<std::string, std::vector<std::string>, std::string>;
// A name and a shape.
using NamedShape = std::tuple<std::string, std::vector<int64_t>>;

// Returns the job of the job file CONFIG, "" for none, and SETTINGS, with workers that take LOCAL
// steps; the job of SITE if it names one. Raises Error.
PythonJob MakeJob(const std::string& config, const std::vector<Setting>& settings,
                  const LocalStepsSpec& local = {}, const SiteFlags& site = {});

// Returns ClaimWorkerNumber. Other Python threads run meanwhile, and Ctrl-C ends the wait.
uint32_t ClaimNumberForPython(const std::string& config, const std::string& addresses,
                              const std::string& credentials, bool insecure,
                              const std::string& state_dir);

// Not thread-safe, as Client. The GIL is held in all calls.
class [[gnu::visibility("hidden")]] PyClient {  // as the classes of nanobind
 public:
  PyClient(const std::string& config, const std::vector<Setting>& settings,
           const std::vector<NamedShape>& tensors, const WorkerSettings& worker);
  ~PyClient();

  // The calls of Client for a training loop, with checks of their order.
  uint64_t Join(const std::vector<AnyArray>& initial);
  void BeginStep(uint32_t examples, float scale, float rate_factor);
  void WaitTensor(uint32_t tensor);
  void WaitAll();
  void Ready(uint32_t tensor, AnyArray gradient);
  // In place of Ready for all tensors: for all fragments, in their order (python/streaming.h).
  void ReadyFragment(uint32_t fragment, std::span<const std::span<float>> tensors);
  void WaitFragment(uint32_t fragment);
  void EndStep();
  uint64_t NextStep();
  // Also completes a step whose gradients are encoded, as after an interrupted NextStep.
  // Arguments: the fields of LeaveReason (client/transport/transport.h).
  void Leave(bool finished, bool failed, const std::string& diverged);
  // Ends the client's threads. Does nothing in a forked process and after an interrupted call that
  // still runs.
  void Close();

  bool closed() const;
  bool in_step() const { return state_ == State::kInStep || state_ == State::kEncoded; }
  bool joined() const { return state_ != State::kNew; }
  const PythonJob& job() const { return job_; }
  const std::vector<TensorShape>& tensors() const { return owned_->tensors(); }
  nanobind::object Replica(uint32_t tensor, nanobind::handle self) const;
  // Returns the last result of Join or NextStep.
  Step next() const { return next_; }
  // Returns the number of examples of all steps so far.
  uint64_t examples() const { return examples_; }

  // --- for the calls of the client's parts ---

  // Returns the client for calls that are thread-safe. Raises Error if it is closed.
  Client& client() const;
  // Returns the client for other calls. Raises Error, too, while another thread waits in a call.
  Client& UsableClient() const;
  // Raises Error within a step and before Join. CALL names the call in the message.
  void CheckBetweenSteps(const char* call) const;
  void CheckTensor(uint32_t tensor) const;
  // Raises the exception of STATUS unless it is OK.
  void Check(const absl::Status& status) const;
  // Returns the result of CALL(client), which runs on the caller thread, after DONE(result) has
  // returned. A signal whose handler raises an exception ends the wait; if CALL does not end soon
  // then, neither does DONE run nor are the arrays that CALL reads ever freed.
  template <typename Result, typename Call>
  Result Run(Call call) {
    return Run<Result>(std::move(call), [](const Result&) {});
  }
  template <typename Result, typename Call, typename Done>
  Result Run(Call call, Done done);

 private:
  enum class State {
    kNew,           // Join has not succeeded
    kBetweenSteps,  // begin_step is next
    kInStep,        // ready() for every tensor and end_step are next
    kEncoded,       // next_step is next
    kLeft,
  };

  void CheckProcess() const;
  void Require(State state, const char* call) const;
  void SetNext(Step next);
  // Returns the result of CALL(client), one of the client's waits for a step, on this thread.
  template <typename Call>
  auto Wait(Call call);
  // Handles signals. Returns false if a wait that a signal has interrupted has lasted long enough.
  bool GoesOn();
  // Returns true when FINISHED is notified, false after a while.
  static bool WaitAWhile(absl::Notification & finished, absl::Duration longest);

  const pid_t pid_;
  std::vector<AnyArray> gradients_;  // the arrays that the client reads
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<OwnedClient> owned_;
  PythonJob job_;
  uint64_t examples_ = 0;
  State state_ = State::kNew;
  Step next_;
  std::vector<bool> ready_;  // for each tensor: ready() was called in this step
  bool join_called_ = false;
  bool busy_ = false;       // a Python thread waits in a call
  bool abandoned_ = false;  // a signal has ended the wait of Run, and the call still runs
  // The time at which a signal has interrupted the wait of a step.
  std::optional<absl::Time> interrupted_at_;

  static constexpr absl::Duration kSignalInterval = absl::Milliseconds(50);
  // How long a wait that a signal has interrupted may go on, because EndStep and NextStep try to
  // complete a step whose gradients are encoded.
  static constexpr absl::Duration kInterruptedWait = absl::Seconds(1);
};

template <typename Result, typename Call, typename Done>
Result PyClient::Run(Call call, Done done) {
  Client& client = UsableClient();
  struct Pending {
    Result result;
    absl::Notification finished;
  };
  const auto pending = std::make_shared<Pending>();
  owned_->caller().Post([pending, call = std::move(call), &client] {
    pending->result = call(client);
    pending->finished.Notify();
  });
  busy_ = true;
  bool interrupted = false;
  while (!interrupted && !WaitAWhile(pending->finished, kSignalInterval)) {
    interrupted = PyErr_CheckSignals() != 0;
  }
  if (interrupted) {
    client.Stop();
    abandoned_ = !WaitAWhile(pending->finished, kInterruptedWait);
  }
  busy_ = false;
  if (!abandoned_) done(pending->result);
  if (interrupted) throw nanobind::python_error();
  return std::move(pending->result);
}

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_PY_CLIENT_H_
