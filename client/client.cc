#include "client/client.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "client/core/client_core.h"
#include "client/encode/push_encoder.h"
#include "client/encode/residual_file.h"
#include "client/encode/state_folder.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/exchange.h"
#include "client/exchange/status_report.h"
#include "client/exchange/step_progress.h"
#include "client/replica/replica.h"
#include "client/transport/read_masters.h"
#include "client/transport/stop_signal.h"
#include "common/codec/codec.h"
#include "common/spec/place_tensors.h"
#include "common/status_macros.h"

namespace thinwire {

namespace {

// Leaves a part of DRAIN for the calls of Leave, which take up to two seconds.
absl::Duration DrainOfSteps(absl::Duration drain) {
  return drain - std::min(absl::Seconds(2), drain / 2);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Make(ClientOptions options,
                                                     std::vector<TensorShape> tensors,
                                                     Transport& transport, ExecutorFactory& threads,
                                                     const Device* device) {
  RETURN_IF_ERROR(PlaceTensors(options.groups, tensors));
  ASSIGN_OR_RETURN(Partition partition,
                   Partition::Make(std::move(tensors), options.shard_size, options.server_count));
  std::unique_ptr<Client> client(
      new Client(std::move(options), std::move(partition), transport, threads, device));
  RETURN_IF_ERROR(client->Init());
  return client;
}

Client::Client(ClientOptions options, Partition partition, Transport& transport,
               ExecutorFactory& threads, const Device* device)
    : options_(std::move(options)),
      partition_(std::move(partition)),
      transport_(transport),
      threads_(threads),
      device_(device),
      stop_(std::make_shared<client::StopSignal>()),
      progress_(std::make_unique<client::StepProgress>(partition_, DrainOfSteps(options_.drain),
                                                       threads_)),
      loop_(threads.Make()) {}

Client::~Client() {
  loop_->Run([this] {
    if (core_ != nullptr) core_->StopExchange();
  });
  if (gradient_loop_ != nullptr) gradient_loop_->Stop();
  loop_->Stop();
  // Finishes the write that StartSaveState has begun.
  if (writer_ != nullptr) writer_->Finish();
}

absl::Status Client::Init() {
  ASSIGN_OR_RETURN(core_, client::ClientCore::Make(options_, partition_, transport_, loop_,
                                                   *progress_, device_));
  if (!options_.state_dir.empty()) writer_ = threads_.Make();
  if (device_ == nullptr) return absl::OkStatus();
  gradient_loop_ = threads_.Make();
  absl::Status used;
  loop_->Run([&] { used = device_->Use(); });
  if (used.ok()) gradient_loop_->Run([&] { used = device_->Use(); });
  return used;
}

template <typename Result, typename Start>
Result Client::WaitForCore(Start start) {
  Result result;
  absl::Notification finished;
  loop_->Post([&] {
    start([&](Result outcome) {
      result = std::move(outcome);
      finished.Notify();
    });
  });
  finished.WaitForNotification();
  return result;
}

absl::StatusOr<Step> Client::Join(std::span<const std::span<const float>> initial) {
  const bool after_rollback = rolled_back();
  if (after_rollback) {
    // Gradients of the step that the rollback has ended come before Join.
    if (gradient_loop_ != nullptr) gradient_loop_->Run([] {});
    step_is_partial_ = false;
    progress_->Restart();
  }
  if (writer_ != nullptr) writer_->Run([] {});  // waits for the write that StartSaveState has begun
  const auto first =
      WaitForCore<absl::StatusOr<Step>>([&](auto done) { core_->Join(initial, std::move(done)); });
  if (first.ok()) {
    next_ = *first;
  } else if (after_rollback) {
    // Replaces the rollback, which can be followed only once.
    progress_->OnFailure(first.status());
  }
  return first;
}

bool Client::rolled_back() const { return progress_->rollback().has_value(); }

std::optional<Step> Client::trial() const { return core_->trial(); }

const client::StateFolder* Client::state_folder() const { return core_->restored().folder(); }

const std::string& Client::residual_start() const { return core_->restored().text(); }

absl::StatusOr<std::vector<Deal>> Client::WaitDealt(Step step, size_t known) {
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  bool waited = false;
  while (!core_->deals().Wait(step, waited ? options_.heartbeat_interval : absl::ZeroDuration())) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for a heartbeat");
    if (!waited) {
      core_->report().set_waiting(
          absl::StrCat("step ", step.value, ": waits for server 0 to deal it"));
    }
    waited = true;
    loop_->Post([this] { core_->HeartbeatToLead(); });
  }
  if (waited) core_->report().set_waiting("");
  return core_->deals().DealsAfter(known);
}

void Client::BeginEpoch(uint64_t epoch, Step begin) { core_->deals().BeginEpoch(epoch, begin); }

bool Client::IsDealt(Step step) const { return core_->deals().Wait(step, absl::ZeroDuration()); }

void Client::StartErrorMeasurement() {
  loop_->Run([&] { core_->encoder().MeasureErrors(true); });
}

std::optional<double> Client::StopErrorMeasurement() {
  std::optional<double> ratio;
  loop_->Run([&] {
    if (core_->encoder().measures_errors()) ratio = core_->encoder().error().ratio();
    core_->encoder().MeasureErrors(false);
  });
  return ratio;
}

void Client::ReportTest(const PrecisionTest& test) {
  core_->report().AddTest(test);
  loop_->Post([this] { core_->HeartbeatToLead(); });
}

bool Client::retired() const { return core_->deals().retired(); }

void Client::BeginStep(Step step, uint32_t examples, float scale) {
  progress_->BeginStep();
  loop_->Post([=, this] { core_->BeginStep(step, examples, scale); });
}

template <typename Wait>
auto Client::CountWait(int field_number, Wait wait) {
  const absl::Time begin = threads_.Now();
  core_->report().BeginWait();
  auto result = wait();
  core_->report().EndWait(threads_.Now() - begin, field_number);
  return result;
}

absl::Status Client::WaitTensor(uint32_t tensor) {
  return CountWait(WorkerCounters::kWaitParametersMicrosFieldNumber,
                   [&] { return progress_->WaitTensor(tensor); });
}

absl::Status Client::WaitAll() {
  return CountWait(WorkerCounters::kWaitParametersMicrosFieldNumber,
                   [&] { return progress_->WaitAll(); });
}

void Client::Ready(uint32_t tensor, std::span<const float> gradient,
                   std::shared_ptr<const void> owner) {
  step_is_partial_ = true;
  loop_->Post([this, tensor, gradient, owner = std::move(owner)]() mutable {
    core_->Ready(tensor, gradient, std::move(owner));
  });
}

void Client::Ready(uint32_t tensor, TensorGradient gradient) {
  if (gradient.wait == nullptr) return Ready(tensor, gradient.values, std::move(gradient.owner));
  step_is_partial_ = true;
  // Waits for the device on a separate event loop, because a wait on loop_ would delay messages
  // from servers.
  gradient_loop_->Post([this, tensor, gradient = std::move(gradient)] {
    const absl::Status computed = gradient.wait();
    if (computed.ok()) return Ready(tensor, gradient.values, gradient.owner);
    loop_->Post([this, computed] { core_->Fail(computed); });
  });
}

absl::Status Client::EndStep() {
  return CountWait(WorkerCounters::kWaitPushesMicrosFieldNumber,
                   [&] { return progress_->WaitEncoded(); });
}

absl::StatusOr<Step> Client::NextStep() {
  ASSIGN_OR_RETURN(next_, CountWait(WorkerCounters::kWaitPushesMicrosFieldNumber,
                                    [&] { return progress_->WaitNext(); }));
  step_is_partial_ = false;
  core_->report().AskForEvaluator();
  return next_;
}

void Client::Stop() {
  stop_->Set();
  progress_->Stop();
  loop_->Post([this] { core_->Stop(); });
}

absl::StatusOr<std::optional<Step>> Client::AwaitCommonStop(absl::Duration longest) {
  if (step_is_partial_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next_.value, ": not all pushes have a verdict"));
  }
  core_->report().set_stops_before(next_);
  const absl::Time end =
      std::min(threads_.Now() + longest, progress_->drain_end() - options_.drain / 2);
  // A failure does not end the wait for a heartbeat, so each wait is short.
  std::optional<Step> stop;
  do {
    RETURN_IF_ERROR(progress_->failure());
    loop_->Post([this] { core_->HeartbeatToLead(); });
    stop = core_->report().WaitForStopStep(
        std::min(options_.heartbeat_interval, end - threads_.Now()));
  } while (!stop.has_value() && threads_.Now() < end);
  if (stop.has_value()) progress_->Drain();
  return stop;
}

absl::StatusOr<bool> Client::StartDraining(absl::Duration compute_time) {
  absl::StatusOr<double> norm;
  std::optional<double> goodput;
  loop_->Run([&] {
    norm = core_->encoder().ResidualNorm();
    goodput = core_->meter().goodput();
  });
  RETURN_IF_ERROR(norm.status());
  if (*norm == 0 && !ReturnsPending()) return false;
  const absl::Duration left = progress_->drain_end() - threads_.Now() - compute_time;
  const auto fits = [&](size_t bytes_per_value) {
    const auto bytes = static_cast<double>(partition_.value_count() * bytes_per_value);
    return left > (goodput.has_value() ? absl::Seconds(bytes / *goodput) : absl::ZeroDuration());
  };
  if (!fits(sizeof(uint16_t))) return false;
  const CodecId codec = fits(sizeof(float)) ? CodecId::kFp32 : CodecId::kBf16;
  loop_->Run([&] { core_->encoder().SendDense(codec); });
  progress_->Drain();
  return true;
}

absl::StatusOr<double> Client::ResidualNorm() {
  if (ReturnsPending()) RETURN_IF_ERROR(progress_->WaitAll());
  absl::StatusOr<double> norm;
  loop_->Run([&] {
    if (core_->encoder().may_finish()) {
      norm = absl::FailedPreconditionError("the last step is still being encoded");
    } else {
      norm = core_->encoder().ResidualNorm();
    }
    if (norm.ok()) *norm += core_->exchange().UnjudgedNorm();
  });
  return norm;
}

bool Client::ReturnsPending() {
  bool pending = false;
  loop_->Run([&] { pending = core_->joined() && core_->exchange().returns_pending(); });
  return pending;
}

absl::StatusOr<std::vector<client::ShardResidualsView>> Client::CurrentResiduals() {
  if (!core_->joined()) return absl::FailedPreconditionError("no server is joined");
  if (step_is_partial_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next_.value, ": not all pushes have a verdict"));
  }
  if (ReturnsPending()) RETURN_IF_ERROR(progress_->WaitAll());
  // At this point the servers have accepted or rejected every push, and the residuals contain all
  // values that gTop-k did not select. The event loop does not use the encoder again before the
  // next step begins.
  absl::StatusOr<std::vector<client::ShardResidualsView>> residuals;
  loop_->Run([&] { residuals = core_->encoder().residuals(); });
  return residuals;
}

absl::Status Client::WriteState(const client::ResidualPoint& point,
                                std::span<const client::ShardResidualsView> residuals,
                                const WriteBeside& beside) const {
  const std::string path = state_folder()->PathOf(point.step);
  if (beside != nullptr) RETURN_IF_ERROR(beside(path));
  RETURN_IF_ERROR(
      client::WriteResiduals(path, client::OwnerOf(options_), partition_, point, residuals));
  return state_folder()->RemoveOld();
}

absl::Status Client::SaveState(const WriteBeside& beside) {
  if (options_.state_dir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<client::ShardResidualsView> residuals, CurrentResiduals());
  absl::Status written;
  writer_->Run([&] { written = WriteState({core_->run(), next_}, residuals, beside); });
  return written;
}

absl::Status Client::StartSaveState(WriteBeside beside) {
  if (options_.state_dir.empty()) return absl::OkStatus();
  if (writing_) {
    return absl::UnavailableError(
        absl::StrCat(state_folder()->PathOf(next_),
                     ": not saved, because an earlier state is still being written"));
  }
  ASSIGN_OR_RETURN(const std::vector<client::ShardResidualsView> residuals, CurrentResiduals());
  const auto copy = std::make_shared<client::SavedResiduals>();
  copy->point = {core_->run(), next_};
  for (const client::ShardResidualsView& shard : residuals) {
    copy->shards.push_back({.residual = {shard.residual.begin(), shard.residual.end()},
                            .momentum = {shard.momentum.begin(), shard.momentum.end()},
                            .late_examples = shard.late_examples});
  }
  writing_ = true;
  writer_->Post([this, copy, beside = std::move(beside)] {
    const absl::Status written = WriteState(copy->point, client::ViewsOf(copy->shards), beside);
    if (!written.ok()) {
      if (const auto more = failure_lines_.Next(threads_.Now())) {
        LOG(ERROR) << "state not saved: " << written.message() << *more;
      }
    }
    writing_ = false;
  });
  return absl::OkStatus();
}

bool Client::StateIsDue() const {
  return !options_.state_dir.empty() && core_->report().checkpoint_step() == next_;
}

absl::Status Client::Leave(bool finished) {
  const absl::Status failure = progress_->failure();
  const absl::Duration patience = failure.ok() ? options_.silence : absl::ZeroDuration();
  const auto left = WaitForCore<absl::Status>(
      [&](auto done) { core_->Leave(finished, patience, std::move(done)); });
  return failure.ok() ? left : failure;
}

absl::Status Client::WaitUntilAlone() {
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  while (!core_->report().WaitUntilAlone(options_.worker, options_.server_count,
                                         options_.heartbeat_interval)) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for other workers");
    const std::vector<WorkerId> others = core_->report().LiveExcept(options_.worker);
    if (others.empty()) continue;  // some server has not answered a heartbeat yet
    core_->report().set_waiting(absl::StrCat("waits until worker", others.size() == 1 ? " " : "s ",
                                             absl::StrJoin(others, ", ", absl::StreamFormatter()),
                                             others.size() == 1 ? " has left" : " have left"));
  }
  core_->report().set_waiting("");
  return progress_->failure();
}

void Client::Pause(absl::Duration duration) { stop_->Wait(duration); }

absl::Status Client::RefreshLive() {
  // The next reply may belong to a heartbeat that was sent before this call.
  const uint64_t count = core_->report().lead_report_count() + 2;
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  while (!core_->report().WaitForLeadReports(count, options_.heartbeat_interval)) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for a heartbeat");
  }
  return progress_->failure();
}

absl::StatusOr<WorkerId> Client::Evaluator() {
  core_->report().AskForEvaluator();
  while (!core_->report().evaluator().has_value()) {
    loop_->Run([this] { core_->HeartbeatToLead(); });
    RETURN_IF_ERROR(RefreshLive());
  }
  return *core_->report().evaluator();
}

absl::StatusOr<std::vector<std::vector<float>>> Client::ReadMasters() {
  return ReadFromServers(MastersRequest());
}

absl::StatusOr<std::vector<std::vector<float>>> Client::ReadAverages() {
  MastersRequest request;
  request.set_averages(true);
  return ReadFromServers(request);
}

absl::StatusOr<std::vector<std::vector<float>>> Client::ReadFromServers(
    const MastersRequest& request) {
  const absl::Duration patience = std::max(options_.silence, options_.server_return);
  return client::ReadMasters(transport_, threads_, stop_, patience, partition_, request);
}

std::span<float> Client::replica(uint32_t tensor) { return core_->replica().tensor(tensor); }
std::vector<WorkerId> Client::live() const { return core_->report().live(); }
std::string Client::waiting() const { return core_->report().waiting(); }
std::vector<GroupCodec> Client::choices() const { return core_->report().choices(); }
WorkerCounters Client::counters() const { return core_->report().counters(); }

}  // namespace thinwire
