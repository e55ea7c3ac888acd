// The Python module thinwire._client: the class Client of client/client.h for Python.
//
//   threads   A call that waits runs on the client's caller thread. The Python thread meanwhile
//             releases the GIL and wakes up every 50 ms to handle signals, so Ctrl-C ends a wait.
//             No thread of the client takes the GIL or frees a Python object.
//   memory    Arrays of the replica refer to the client's memory and keep the client alive. The
//             client reads gradients where they are; this module keeps them alive until EndStep.
//   fork      Only the process that made a client can use it: a child has none of its threads.
//   errors    A failed call raises thinwire.Error or a subclass, with the status message as text.
#include <glog/logging.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "common/base/ids.h"
#include "common/time/thread_executor.h"
#include "config/effective.h"
#include "config/job_text.h"
#include "proto/frame.h"
#include "proto/worker_event.pb.h"
#include "python/job_settings.h"
#include "python/owned_client.h"
#include "python/sampler_module.h"

namespace nb = nanobind;

namespace thinwire {
namespace {

using Setting = std::tuple<std::string, std::vector<std::string>, std::string>;
using AnyArray = nb::ndarray<nb::ro>;

constexpr absl::Duration kSignalInterval = absl::Milliseconds(50);
// How long a wait that a signal has interrupted may go on, because EndStep and NextStep try to
// complete a step whose gradients are encoded.
constexpr absl::Duration kInterruptedWait = absl::Seconds(1);

// Raises the exception class NAME of this module.
[[noreturn]] void Raise(const char* name, const std::string& text) {
  const nb::object type = nb::module_::import_("thinwire._client").attr(name);
  PyErr_SetString(type.ptr(), text.c_str());
  throw nb::python_error();
}

const char* ExceptionOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return "ServerLostError";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "RefusedError";
    default:
      return "Error";
  }
}

PythonJob MakeJob(const std::string& config, const std::vector<Setting>& settings) {
  std::vector<JobSetting> list;
  for (const auto& [name, values, place] : settings) list.push_back({name, values, place});
  absl::StatusOr<PythonJob> job = MakePythonJob(config, list);
  if (!job.ok()) Raise("Error", std::string(job.status().message()));
  return *std::move(job);
}

// Returns the values of ARRAY. PLACE names it in the error for an array that is not a contiguous
// fp32 array in the host's memory with COUNT values.
std::span<const float> ValuesOf(const AnyArray& array, uint64_t count, const std::string& place) {
  if (array.dtype() != nb::dtype<float>() || array.device_type() != nb::device::cpu::value) {
    Raise("Error", absl::StrCat(place, ": wrong array (expected fp32 values in the host's memory, ",
                                "got another type or device)"));
  }
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) {
      Raise("Error", absl::StrCat(place, ": not contiguous (expected a row-major array)"));
    }
    stride *= static_cast<int64_t>(array.shape(i));
  }
  if (array.size() != count) {
    Raise("Error", absl::StrCat(place, ": wrong number of values (expected ", count, ", got ",
                                array.size(), ")"));
  }
  return {static_cast<const float*>(array.data()), array.size()};
}

class PyClient {
 public:
  PyClient(const std::string& config, const std::vector<Setting>& settings,
           const std::vector<std::tuple<std::string, std::vector<int64_t>>>& tensors,
           const WorkerSettings& worker)
      : pid_(getpid()), threads_(std::make_unique<Threads>()) {
    const PythonJob job = MakeJob(config, settings);
    std::vector<TensorShape> shapes;
    for (const auto& [name, shape] : tensors) shapes.push_back({.name = name, .shape = shape});
    absl::StatusOr<std::unique_ptr<OwnedClient>> owned =
        OwnedClient::Make(job, worker, std::move(shapes), *threads_);
    if (!owned.ok()) Raise("Error", std::string(owned.status().message()));
    owned_ = *std::move(owned);
    durable_ = job.spec.recovery.durability != Durability::kNone;
    learning_rate_ = job.spec.schedule.learning_rate;
    holds_average_ = Traits(job.spec.optimizer.kind).holds_average;
    workers_ = job.spec.rule.workers;
    ready_.resize(owned_->tensors().size());
  }

  ~PyClient() {
    // The threads that a destructor would wait for do not exist in a forked process; a call that
    // still runs uses the client.
    if (getpid() != pid_ || abandoned_) {
      (void)owned_.release();
      (void)threads_.release();
      new std::vector<AnyArray>(std::move(gradients_));
    }
  }

  uint64_t Join(const std::vector<AnyArray>& initial) {
    CheckUsable();
    if (join_called_ && !owned_->client().rolled_back()) {
      Raise("Error", "join: called again (expected one call, and one after each RolledBack)");
    }
    join_called_ = true;
    if (initial.size() != owned_->tensors().size()) {
      Raise("Error", absl::StrCat("initial: wrong number of arrays (expected ",
                                  owned_->tensors().size(), ", got ", initial.size(), ")"));
    }
    std::vector<std::span<const float>> spans;
    for (size_t i = 0; i < initial.size(); ++i) {
      const TensorShape& tensor = owned_->tensors()[i];
      spans.push_back(
          ValuesOf(initial[i], tensor.value_count(), absl::StrCat("initial ", tensor.name)));
    }
    // Gradients of a step that a rollback has ended may still be read before the client joins again.
    gradients_.insert(gradients_.end(), initial.begin(), initial.end());
    Check(Run<absl::StatusOr<Step>>(
              [spans = std::move(spans)](Client& client) { return client.Join(spans); },
              [this](const absl::StatusOr<Step>& first) {
                gradients_.clear();
                if (first.ok()) SetNext(*first);
              })
              .status());
    return next_.value;
  }

  void BeginStep(uint32_t examples, float scale, float rate_factor) {
    CheckUsable();
    Require(State::kBetweenSteps, "begin_step");
    if (!IsRateFactor(rate_factor)) {
      Raise("Error", absl::StrCat("rate_factor: out of range (expected a finite number of at least "
                                  "0, got ",
                                  rate_factor, ")"));
    }
    Client& client = owned_->client();
    client.BeginStep(next_, examples, scale, rate_factor);
    state_ = State::kInStep;
    ready_.assign(ready_.size(), false);
  }

  void WaitTensor(uint32_t tensor) {
    CheckTensor(tensor);
    Check(Run<absl::Status>([tensor](Client& client) { return client.WaitTensor(tensor); }));
  }

  void WaitAll() {
    Check(Run<absl::Status>([](Client& client) { return client.WaitAll(); }));
  }

  void Ready(uint32_t tensor, AnyArray gradient) {
    CheckOpen();
    CheckTensor(tensor);
    Require(State::kInStep, "ready");
    const TensorShape& shape = owned_->tensors()[tensor];
    const std::string place = absl::StrCat("gradient of ", shape.name);
    if (ready_[tensor]) {
      Raise("Error", absl::StrCat(place, ": given twice in a step (expected once)"));
    }
    const std::span<const float> values = ValuesOf(gradient, shape.value_count(), place);
    gradients_.push_back(std::move(gradient));
    ready_[tensor] = true;
    owned_->client().Ready(tensor, values);
  }

  void EndStep() {
    CheckComplete("end_step");
    Check(Run<absl::Status>([](Client& client) { return client.EndStep(); },
                            [this](const absl::Status& status) {
                              if (status.ok()) SetEncoded();
                            }));
  }

  uint64_t NextStep() {
    CheckUsable();
    Require(State::kEncoded, "next_step");
    Check(Run<absl::StatusOr<Step>>([](Client& client) { return client.NextStep(); },
                                    [this](const absl::StatusOr<Step>& next) {
                                      if (next.ok()) SetNext(*next);
                                    })
              .status());
    return next_.value;
  }

  // EndStep, NextStep and WaitAll, with two switches between threads instead of six.
  uint64_t FinishStep() {
    struct Outcome {
      bool encoded = false;
      std::optional<Step> next;
      absl::Status status;
    };
    CheckComplete("finish_step");
    const Outcome outcome = Run<Outcome>(
        [](Client& client) {
          Outcome outcome;
          outcome.status = client.EndStep();
          if (!outcome.status.ok()) return outcome;
          outcome.encoded = true;
          const absl::StatusOr<Step> next = client.NextStep();
          outcome.status = next.status();
          if (!next.ok()) return outcome;
          outcome.next = *next;
          outcome.status = client.WaitAll();
          return outcome;
        },
        [this](const Outcome& outcome) {
          if (outcome.encoded) SetEncoded();
          if (outcome.next.has_value()) SetNext(*outcome.next);
        });
    Check(outcome.status);
    return next_.value;
  }

  // Deals::Wait. Returns the deals as bytes.
  std::vector<nb::bytes> AwaitDeals(uint64_t step, size_t known) {
    CheckBetweenSteps("await_deals");
    const auto wait = [step, known](Client& client) {
      return client.deals().Wait(Step{step}, known);
    };
    using Deals = absl::StatusOr<std::vector<Deal>>;
    // Usually the step is dealt, and the wait needs no other thread.
    const Deals deals = IsDealt(step) ? wait(owned_->client()) : Run<Deals>(wait);
    Check(deals.status());
    std::vector<nb::bytes> texts;
    for (const Deal& deal : *deals) {
      const std::string text = deal.SerializeAsString();
      texts.emplace_back(text.data(), text.size());
    }
    return texts;
  }

  bool IsDealt(uint64_t step) {
    CheckUsable();
    return owned_->client().deals().IsDealt(Step{step});
  }

  void BeginEpoch(uint64_t epoch, uint64_t begin) {
    CheckUsable();
    owned_->client().deals().BeginEpoch(epoch, Step{begin});
  }

  void SaveState() {
    Check(Run<absl::Status>([](Client& client) { return client.state().Save(); }));
  }

  bool StateIsDue() {
    CheckUsable();
    return owned_->client().state().IsDue();
  }

  // Draining::AwaitCommonStop, Start and ResidualNorm, between two steps.
  std::optional<uint64_t> AwaitCommonStop(double seconds) {
    CheckBetweenSteps("await_common_stop");
    const absl::StatusOr<std::optional<Step>> step = Run<absl::StatusOr<std::optional<Step>>>(
        [longest = absl::Seconds(seconds)](Client& client) {
          return client.draining().AwaitCommonStop(longest);
        });
    Check(step.status());
    return step->has_value() ? std::optional((*step)->value) : std::nullopt;
  }

  bool StartDrain(double step_seconds) {
    CheckBetweenSteps("start_drain");
    const absl::StatusOr<bool> starts =
        Run<absl::StatusOr<bool>>([compute_time = absl::Seconds(step_seconds)](Client& client) {
          return client.draining().Start(compute_time);
        });
    Check(starts.status());
    return *starts;
  }

  double ResidualNorm() {
    CheckBetweenSteps("residual_norm");
    const absl::StatusOr<double> norm = Run<absl::StatusOr<double>>(
        [](Client& client) { return client.draining().ResidualNorm(); });
    Check(norm.status());
    return *norm;
  }

  void Stop() {
    CheckProcess();
    if (!owned_->closed()) owned_->client().Stop();
  }

  void WaitUntilAlone() {
    CheckBetweenSteps("wait_until_alone");
    Check(Run<absl::Status>([](Client& client) { return client.members().WaitUntilAlone(); }));
  }

  // Also completes a step whose gradients are encoded, as after an interrupted next_step.
  void Leave() {
    CheckUsable();
    if (state_ == State::kNew) return;
    if (state_ == State::kEncoded) NextStep();
    CheckBetweenSteps("leave");
    Check(Run<absl::Status>([](Client& client) { return client.Leave(); }));
    state_ = State::kLeft;
  }

  nb::list ReadMasters(bool averages) {
    CheckBetweenSteps(averages ? "read_averages" : "read_masters");
    using Values = std::vector<std::vector<float>>;
    absl::StatusOr<Values> values = Run<absl::StatusOr<Values>>([averages](Client& client) {
      return averages ? client.masters().ReadAverages() : client.masters().Read();
    });
    Check(values.status());
    nb::list arrays;
    for (size_t i = 0; i < values->size(); ++i) {
      auto* const array = new std::vector<float>(std::move((*values)[i]));
      const nb::capsule owner(
          array, [](void* pointer) noexcept { delete static_cast<std::vector<float>*>(pointer); });
      arrays.append(ArrayOf(*array, owned_->tensors()[i], owner));
    }
    return arrays;
  }

  // Ends the client's threads. Does nothing in a forked process and after an interrupted call that
  // still runs.
  void Close() {
    if (getpid() != pid_ || abandoned_ || owned_->closed()) return;
    CheckUsable();
    owned_->Close();
  }

  nb::object Replica(uint32_t tensor, nb::handle self) const {
    CheckTensor(tensor);
    return ArrayOf(owned_->replica(tensor), owned_->tensors()[tensor], self);
  }

  std::vector<uint32_t> live() {
    CheckOpen();
    std::vector<uint32_t> numbers;
    for (const WorkerId worker : owned_->client().members().live()) numbers.push_back(worker.value);
    return numbers;
  }

  bool retired() {
    CheckOpen();
    return owned_->client().members().retired();
  }

  std::string waiting() {
    CheckOpen();
    return owned_->client().waiting();
  }

  std::map<std::string, uint64_t> counters() {
    CheckOpen();
    const WorkerCounters counters = owned_->client().counters();
    std::map<std::string, uint64_t> values;
    const google::protobuf::Descriptor& type = *WorkerCounters::descriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      values[type.field(i)->name()] =
          WorkerCounters::GetReflection()->GetUInt64(counters, type.field(i));
    }
    return values;
  }

  bool rolled_back() {
    CheckOpen();
    return owned_->client().rolled_back();
  }

  bool in_step() const { return state_ == State::kInStep || state_ == State::kEncoded; }
  bool joined() const { return state_ != State::kNew; }
  bool durable() const { return durable_; }
  double learning_rate() const { return learning_rate_; }
  bool holds_average() const { return holds_average_; }
  uint32_t workers() const { return workers_; }
  bool closed() const { return getpid() != pid_ || abandoned_ || owned_->closed(); }

 private:
  enum class State {
    kNew,           // Join has not succeeded
    kBetweenSteps,  // begin_step is next
    kInStep,        // ready() for every tensor and end_step are next
    kEncoded,       // next_step is next
    kLeft,
  };

  template <typename Values>
  static nb::object ArrayOf(Values&& values, const TensorShape& tensor, nb::handle owner) {
    const std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
    return nb::cast(nb::ndarray<float, nb::numpy, nb::device::cpu>(values.data(), shape.size(),
                                                                   shape.data(), owner),
                    nb::rv_policy::reference);
  }

  void CheckProcess() const {
    if (getpid() == pid_) return;
    Raise("Error", absl::StrCat("client: used in a forked process (expected process ", pid_,
                                ", which made the client, got process ", getpid(), ")"));
  }

  void CheckOpen() const {
    CheckProcess();
    if (abandoned_) Raise("Error", "client: an interrupted call has not ended (expected no call)");
    if (owned_->closed()) Raise("Error", "client: closed (expected no call after close)");
  }

  // Checks that the calling thread may use the functions that are not thread-safe.
  void CheckUsable() const {
    CheckOpen();
    if (busy_) Raise("Error", "client: another thread is waiting in a call of this client");
  }

  void CheckBetweenSteps(const char* call) const {
    CheckUsable();
    if (state_ == State::kNew) Require(State::kBetweenSteps, call);
    if (!in_step()) return;
    Raise("Error", absl::StrCat(call, ": step ", next_.value,
                                " is not complete (expected a call between two steps)"));
  }

  // Checks that CALL, which completes the step, has the gradients of all tensors.
  void CheckComplete(const char* call) const {
    CheckUsable();
    Require(State::kInStep, call);
    for (size_t i = 0; i < ready_.size(); ++i) {
      if (ready_[i]) continue;
      Raise("Error", absl::StrCat(call, ": no gradient of ", owned_->tensors()[i].name,
                                  " (expected ready() for every tensor)"));
    }
  }

  void SetEncoded() {
    gradients_.clear();
    state_ = State::kEncoded;
  }

  void SetNext(Step next) {
    next_ = next;
    state_ = State::kBetweenSteps;
  }

  void CheckTensor(uint32_t tensor) const {
    if (tensor < owned_->tensors().size()) return;
    Raise("Error", absl::StrCat("tensor: out of range (expected below ", owned_->tensors().size(),
                                ", got ", tensor, ")"));
  }

  void Require(State state, const char* call) const {
    if (state_ == state) return;
    static constexpr const char* kNext[] = {"join", "begin_step", "ready and end_step", "next_step",
                                            "close"};
    Raise("Error", absl::StrCat(call, ": wrong order (expected ", kNext[static_cast<int>(state_)],
                                ", got ", call, ")"));
  }

  // Raises the exception of STATUS unless it is OK.
  void Check(const absl::Status& status) {
    if (status.ok()) return;
    const bool rolled_back = owned_->client().rolled_back();
    Raise(rolled_back ? "RolledBack" : ExceptionOf(status), std::string(status.message()));
  }

  // Returns the result of CALL, which runs on the caller thread, after DONE(result) has returned. A
  // signal whose handler raises an exception ends the wait; if CALL does not end soon then, neither
  // does DONE run nor are the arrays that CALL reads ever freed.
  template <typename Result, typename Call>
  Result Run(Call call) {
    return Run<Result>(std::move(call), [](const Result&) {});
  }
  template <typename Result, typename Call, typename Done>
  Result Run(Call call, Done done) {
    CheckUsable();
    struct Pending {
      Result result;
      absl::Notification finished;
    };
    const auto pending = std::make_shared<Pending>();
    owned_->caller().Post([pending, call = std::move(call), &client = owned_->client()] {
      pending->result = call(client);
      pending->finished.Notify();
    });
    busy_ = true;
    bool interrupted = false;
    while (!interrupted && !WaitFor(pending->finished, kSignalInterval)) {
      interrupted = PyErr_CheckSignals() != 0;
    }
    if (interrupted) {
      owned_->client().Stop();
      abandoned_ = !WaitFor(pending->finished, kInterruptedWait);
    }
    busy_ = false;
    if (!abandoned_) done(pending->result);
    if (interrupted) throw nb::python_error();
    return std::move(pending->result);
  }

  static bool WaitFor(absl::Notification& finished, absl::Duration longest) {
    nb::gil_scoped_release release;
    return finished.WaitForNotificationWithTimeout(longest);
  }

  const pid_t pid_;
  std::vector<AnyArray> gradients_;  // the arrays that the client reads
  std::unique_ptr<Threads> threads_;
  std::unique_ptr<OwnedClient> owned_;
  bool durable_ = false;
  double learning_rate_ = 0;
  bool holds_average_ = false;
  uint32_t workers_ = 0;
  State state_ = State::kNew;
  Step next_;
  std::vector<bool> ready_;  // for each tensor: ready() was called in this step
  bool join_called_ = false;
  bool busy_ = false;       // a Python thread is in Run
  bool abandoned_ = false;  // a signal has ended the wait of Run, and the call still runs
};

void AddException(nb::module_& module, const char* name, nb::handle base, const char* doc) {
  const std::string full_name = absl::StrCat("thinwire.", name);
  PyObject* const type =
      PyErr_NewExceptionWithDoc(full_name.c_str(), doc, base.ptr(), /*dict=*/nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr(name) = nb::steal(type);
}

}  // namespace
}  // namespace thinwire

NB_MODULE(_client, module) {
  using namespace nb::literals;  // NOLINT: "name"_a
  using thinwire::PyClient;
  FLAGS_logtostderr = true;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("thinwire");
  // Objects that live until the end of a process are common in Python and are not leaks.
  nb::set_leak_warnings(false);

  module.doc() = "The client of a thinwire worker (client/client.h). Programs use thinwire.torch.";
  thinwire::AddException(module, "Error", PyExc_RuntimeError, "An error of thinwire.");
  const nb::object error = module.attr("Error");
  thinwire::AddException(module, "RefusedError", error,
                         "The servers do not admit this worker: another job, model or number.");
  thinwire::AddException(module, "ServerLostError", error, "A server did not respond in time.");
  thinwire::AddException(module, "DivergedError", error,
                         "Training has diverged: gradients stay infinite or NaN.");
  thinwire::AddException(module, "RolledBack", error,
                         "The servers continue from an earlier step. Join again.");

  module.def("setting_names", &thinwire::JobSettingNames,
             "Returns the names of the settings of a job file without its task.");
  module.def(
      "job_text",
      [](const std::string& config, const std::vector<thinwire::Setting>& settings) {
        return thinwire::EffectiveText(thinwire::MakeJob(config, settings).config);
      },
      "config"_a, "settings"_a,
      "Returns the text of the job file for the servers. CONFIG is the path of a job file or ''. "
      "SETTINGS are tuples of a name, a list of values, and the place for messages.");

  module.def(
      "file_workers",
      [](const std::string& config) {
        const absl::StatusOr<thinwire::JobText> job = thinwire::ReadJobFile(config);
        if (!job.ok()) thinwire::Raise("Error", std::string(job.status().message()));
        return job->config.consistency().workers();
      },
      "config"_a, "Returns the number of workers in the job file CONFIG, or its default.");

  thinwire::AddSampler(module);
  nb::class_<PyClient>(module, "Client",
                       "A worker's client. One thread makes all calls, in this order: join; "
                       "begin_step, ready for each tensor, end_step, next_step, wait_all for each "
                       "step; leave; close.")
      .def(
          "__init__",
          [](PyClient* self, const std::string& config,
             const std::vector<thinwire::Setting>& settings,
             const std::vector<std::tuple<std::string, std::vector<int64_t>>>& tensors,
             uint32_t worker, std::string addresses, std::string credentials, bool insecure,
             std::string state_dir, uint64_t planned_steps, uint32_t examples, std::string task) {
            new (self) PyClient(config, settings, tensors,
                                {.worker = worker,
                                 .addresses = std::move(addresses),
                                 .credentials = std::move(credentials),
                                 .insecure = insecure,
                                 .state_dir = std::move(state_dir),
                                 .planned_steps = planned_steps,
                                 .examples = examples,
                                 .task = std::move(task)});
          },
          "config"_a, "settings"_a, "tensors"_a, "worker"_a, "addresses"_a, "credentials"_a = "",
          "insecure"_a = false, "state_dir"_a = "", "planned_steps"_a = 0, "examples"_a = 1,
          "task"_a = "")
      .def("join", &PyClient::Join, "initial"_a,
           "Joins every server and returns the first step. INITIAL has one contiguous fp32 array "
           "per tensor, the same for all workers. Call it again after RolledBack.")
      .def("begin_step", &PyClient::BeginStep, "examples"_a = 1, "scale"_a = 1.0F,
           "rate_factor"_a = 1.0F,
           "Begins the step that join or next_step returned. EXAMPLES is the weight of this "
           "worker's gradient; SCALE is the factor that the gradients were multiplied by; "
           "RATE_FACTOR multiplies the learning rate of the update.")
      .def("wait_tensor", &PyClient::WaitTensor, "tensor"_a,
           "Blocks until the parameters of TENSOR for this step are in the replica.")
      .def("wait_all", &PyClient::WaitAll,
           "Blocks until all parameters for this step are in the replica.")
      .def("ready", &PyClient::Ready, "tensor"_a, "gradient"_a,
           "Passes the gradient of TENSOR, a contiguous fp32 array that must not change before "
           "end_step returns. Returns at once; the values are not copied.")
      .def("end_step", &PyClient::EndStep, "Blocks until all gradients are encoded.")
      .def("next_step", &PyClient::NextStep,
           "Blocks until the servers have judged all pushes, and returns the next step.")
      .def(
          "finish_step", &PyClient::FinishStep,
          "Does end_step, next_step and wait_all, and returns the next step. Faster than the three "
          "calls.")
      .def(
          "await_deals", &PyClient::AwaitDeals, "step"_a, "known"_a,
          "Blocks until all deals up to STEP are known, and returns those with numbers above KNOWN "
          "as bytes (Deals in client/parts/deals.h).")
      .def("is_dealt", &PyClient::IsDealt, "step"_a,
           "Returns whether await_deals for STEP returns at once.")
      .def("begin_epoch", &PyClient::BeginEpoch, "epoch"_a, "begin"_a,
           "Tells the lead that the next step belongs to EPOCH of the data, which begins at step "
           "BEGIN.")
      .def("save_state", &PyClient::SaveState,
           "Saves the residuals in the state folder. Call it between two steps.")
      .def("await_common_stop", &PyClient::AwaitCommonStop, "seconds"_a,
           "After stop(): returns the step before which all live workers stop, or None if some of "
           "them go on, or if they do not agree within SECONDS.")
      .def("start_drain", &PyClient::StartDrain, "step_seconds"_a,
           "After stop(): returns whether there is a residual, which the next step will empty. "
           "STEP_SECONDS is the usual time of a step.")
      .def("residual_norm", &PyClient::ResidualNorm,
           "Returns the L1 norm of the gradient values that no server is known to have.")
      .def("leave", &PyClient::Leave, "Leaves every server.")
      .def("stop", &PyClient::Stop, "Ends the waits of the training thread early.")
      .def("close", &PyClient::Close,
           "Ends the client's threads. Arrays of the replica stay valid and no longer change.")
      .def("wait_until_alone", &PyClient::WaitUntilAlone, "Blocks until no other worker is live.")
      .def(
          "read_masters", [](PyClient& self) { return self.ReadMasters(/*averages=*/false); },
          "Returns the exact fp32 parameters of the servers, one new array per tensor.")
      .def(
          "read_averages", [](PyClient& self) { return self.ReadMasters(/*averages=*/true); },
          "Returns the moving averages of the parameters (setting parameter_average).")
      .def(
          "replica",
          [](nb::handle self, uint32_t tensor) {
            return nb::cast<PyClient&>(self).Replica(tensor, self);
          },
          "tensor"_a, "Returns the parameters of TENSOR as a writable array without a copy.")
      .def_prop_ro("live", &PyClient::live, "The numbers of the workers with valid leases.")
      .def_prop_ro("waiting", &PyClient::waiting,
                   "Names the workers or the server that this worker waits for; '' if none.")
      .def_prop_ro(
          "counters", &PyClient::counters,
          "The counters of the client by name (WorkerCounters in proto/worker_event.proto).")
      .def_prop_ro("state_is_due", &PyClient::StateIsDue,
                   "Whether the servers make a checkpoint of the next step, so that save_state is "
                   "due.")
      .def_prop_ro("retired", &PyClient::retired, "Whether an operator has removed this worker.")
      .def_prop_ro("rolled_back", &PyClient::rolled_back,
                   "Whether the servers continue from an earlier step.")
      .def_prop_ro("joined", &PyClient::joined, "Whether join has succeeded.")
      .def_prop_ro("durable", &PyClient::durable,
                   "Whether the job has a durability other than none, so that join may be called "
                   "again with the initial values.")
      .def_prop_ro("learning_rate", &PyClient::learning_rate,
                   "The setting learning_rate of the job.")
      .def_prop_ro("holds_average", &PyClient::holds_average,
                   "Whether the servers hold mean gradients in place of parameters.")
      .def_prop_ro("workers", &PyClient::workers, "The number of workers at the start of the job.")
      .def_prop_ro("in_step", &PyClient::in_step, "Whether a step has begun and not ended.")
      .def_prop_ro("closed", &PyClient::closed, "Whether the client can no longer be used.");
}
