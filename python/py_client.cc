#include "python/py_client.h"

#include <unistd.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/time/clock.h"
#include "proto/frame.h"
#include "python/errors.h"

namespace nb = nanobind;

namespace thinwire {

PythonJob MakeJob(const std::string& config, const std::vector<Setting>& settings,
                  const LocalStepsSpec& local, const SiteFlags& site) {
  std::vector<JobSetting> list;
  for (const auto& [name, values, place] : settings) list.push_back({name, values, place});
  absl::StatusOr<PythonJob> job = MakePythonJob(config, list, local, site);
  if (!job.ok()) Raise("Error", std::string(job.status().message()));
  return *std::move(job);
}

uint32_t ClaimNumberForPython(const std::string& config, const std::string& addresses,
                              const std::string& credentials, bool insecure,
                              const std::string& state_dir) {
  SteadyClock clock;
  bool interrupted = false;
  const absl::StatusOr<WorkerId> number = [&] {
    const nb::gil_scoped_release release;
    return ClaimWorkerNumber(config,
                             {.addresses = addresses,
                              .credentials = credentials,
                              .insecure = insecure,
                              .state_dir = state_dir},
                             clock, [&](absl::Duration time) {
                               absl::SleepFor(time);
                               const nb::gil_scoped_acquire acquire;
                               interrupted = PyErr_CheckSignals() != 0;
                               return !interrupted;
                             });
  }();
  if (interrupted) throw nb::python_error();
  if (!number.ok()) Raise(number.status());
  return number->value;
}

template <typename Call>
auto PyClient::Wait(Call call) {
  Client& client = UsableClient();
  busy_ = true;
  auto result = [&] {
    const nb::gil_scoped_release release;
    return call(client);
  }();
  busy_ = false;
  return result;
}

PyClient::PyClient(const std::string& config, const std::vector<Setting>& settings,
                   const std::vector<NamedShape>& tensors, const WorkerSettings& worker)
    : pid_(getpid()),
      threads_(std::make_unique<Threads>()),
      job_(MakeJob(config, settings, worker.local, worker.site)) {
  std::vector<TensorShape> shapes;
  for (const auto& [name, shape] : tensors) shapes.push_back({.name = name, .shape = shape});
  absl::StatusOr<std::unique_ptr<OwnedClient>> owned =
      OwnedClient::Make(job_, worker, std::move(shapes), *threads_);
  if (!owned.ok()) Raise("Error", std::string(owned.status().message()));
  owned_ = *std::move(owned);
  owned_->client().SetWaitCheck([this] { return GoesOn(); });
  ready_.resize(owned_->tensors().size());
}

PyClient::~PyClient() {
  // The threads that a destructor would wait for do not exist in a forked process; a call that
  // still runs uses the client.
  if (getpid() != pid_ || abandoned_) {
    (void)owned_.release();
    (void)threads_.release();
    new std::vector<AnyArray>(std::move(gradients_));
  }
}

uint64_t PyClient::Join(const std::vector<AnyArray>& initial) {
  if (join_called_ && !UsableClient().rolled_back()) {
    Raise("Error", "join: called again (expected one call, and one after each RolledBack)");
  }
  join_called_ = true;
  if (initial.size() != tensors().size()) {
    Raise("Error", absl::StrCat("initial: wrong number of arrays (expected ", tensors().size(),
                                ", got ", initial.size(), ")"));
  }
  std::vector<std::span<const float>> spans;
  for (size_t i = 0; i < initial.size(); ++i) {
    const TensorShape& tensor = tensors()[i];
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

void PyClient::BeginStep(uint32_t examples, float scale, float rate_factor) {
  Client& client = UsableClient();
  Require(State::kBetweenSteps, "begin_step");
  if (!IsRateFactor(rate_factor)) {
    Raise("Error", absl::StrCat("rate_factor: out of range (expected a finite number of at least "
                                "0, got ",
                                rate_factor, ")"));
  }
  client.BeginStep(next_, examples, scale, rate_factor);
  examples_ += examples;
  state_ = State::kInStep;
  ready_.assign(ready_.size(), false);
}

void PyClient::WaitTensor(uint32_t tensor) {
  CheckTensor(tensor);
  Check(Wait([tensor](Client& client) { return client.WaitTensor(tensor); }));
}

void PyClient::WaitAll() {
  Check(Wait([](Client& client) { return client.WaitAll(); }));
}

void PyClient::Ready(uint32_t tensor, AnyArray gradient) {
  Client& client = this->client();
  CheckTensor(tensor);
  Require(State::kInStep, "ready");
  const TensorShape& shape = tensors()[tensor];
  const std::string place = absl::StrCat("gradient of ", shape.name);
  if (ready_[tensor]) {
    Raise("Error", absl::StrCat(place, ": given twice in a step (expected once)"));
  }
  const std::span<const float> values = ValuesOf(gradient, shape.value_count(), place);
  gradients_.push_back(std::move(gradient));
  ready_[tensor] = true;
  client.Ready(tensor, values);
}

void PyClient::ReadyFragment(uint32_t fragment, std::span<const std::span<float>> tensors) {
  Client& client = this->client();
  Require(State::kInStep, "ready");
  client.fragments().Ready(fragment, tensors);
  if (fragment + 1 == client.fragments().shards().size()) ready_.assign(ready_.size(), true);
}

void PyClient::WaitFragment(uint32_t fragment) {
  Check(Wait([fragment](Client& client) { return client.fragments().Wait(fragment); }));
}

void PyClient::EndStep() {
  UsableClient();
  Require(State::kInStep, "end_step");
  for (size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i]) continue;
    Raise("Error", absl::StrCat("end_step: no gradient of ", tensors()[i].name,
                                " (expected ready() for every tensor)"));
  }
  const absl::Status encoded = Wait([](Client& client) { return client.EndStep(); });
  if (encoded.ok()) {
    gradients_.clear();
    state_ = State::kEncoded;
  }
  Check(encoded);
}

uint64_t PyClient::NextStep() {
  UsableClient();
  Require(State::kEncoded, "next_step");
  const absl::StatusOr<Step> next = Wait([](Client& client) { return client.NextStep(); });
  if (next.ok()) SetNext(*next);
  Check(next.status());
  return next_.value;
}

void PyClient::Leave(bool finished, bool failed, const std::string& diverged) {
  UsableClient();
  if (state_ == State::kNew) return;
  if (state_ == State::kEncoded) NextStep();
  CheckBetweenSteps("leave");
  Check(Run<absl::Status>([=](Client& client) {
    return client.Leave({.finished = finished, .failed = failed, .diverged = diverged});
  }));
  state_ = State::kLeft;
}

void PyClient::Close() {
  if (closed()) return;
  UsableClient();
  owned_->Close();
  gradients_.clear();
}

bool PyClient::closed() const { return getpid() != pid_ || abandoned_ || owned_->closed(); }

nb::object PyClient::Replica(uint32_t tensor, nb::handle self) const {
  CheckTensor(tensor);
  return ArrayOf(owned_->replica(tensor), tensors()[tensor], self);
}

Client& PyClient::client() const {
  CheckProcess();
  if (abandoned_) Raise("Error", "client: an interrupted call has not ended (expected no call)");
  if (owned_->closed()) Raise("Error", "client: closed (expected no call after close)");
  return owned_->client();
}

Client& PyClient::UsableClient() const {
  Client& client = this->client();
  if (busy_) Raise("Error", "client: another thread is waiting in a call of this client");
  return client;
}

void PyClient::CheckBetweenSteps(const char* call) const {
  UsableClient();
  if (state_ == State::kNew) Require(State::kBetweenSteps, call);
  if (!in_step()) return;
  Raise("Error", absl::StrCat(call, ": step ", next_.value,
                              " is not complete (expected a call between two steps)"));
}

void PyClient::Check(const absl::Status& status) const {
  if (interrupted_at_.has_value() && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (status.ok()) return;
  if (owned_->client().rolled_back()) Raise("RolledBack", std::string(status.message()));
  Raise(status);
}

void PyClient::CheckProcess() const {
  if (getpid() == pid_) return;
  Raise("Error", absl::StrCat("client: used in a forked process (expected process ", pid_,
                              ", which made the client, got process ", getpid(), ")"));
}

void PyClient::CheckTensor(uint32_t tensor) const {
  if (tensor < tensors().size()) return;
  Raise("Error", absl::StrCat("tensor: out of range (expected below ", tensors().size(), ", got ",
                              tensor, ")"));
}

void PyClient::Require(State state, const char* call) const {
  if (state_ == state) return;
  static constexpr const char* kNext[] = {"join", "begin_step", "ready and end_step", "next_step",
                                          "close"};
  Raise("Error", absl::StrCat(call, ": wrong order (expected ", kNext[static_cast<int>(state_)],
                              ", got ", call, ")"));
}

void PyClient::SetNext(Step next) {
  next_ = next;
  state_ = State::kBetweenSteps;
}

bool PyClient::GoesOn() {
  const nb::gil_scoped_acquire acquire;
  if (interrupted_at_.has_value()) return threads_->Now() < *interrupted_at_ + kInterruptedWait;
  if (PyErr_CheckSignals() == 0) return true;
  interrupted_at_ = threads_->Now();
  owned_->client().Stop();
  return true;
}

bool PyClient::WaitAWhile(absl::Notification& finished, absl::Duration longest) {
  nb::gil_scoped_release release;
  return finished.WaitForNotificationWithTimeout(longest);
}

}  // namespace thinwire
