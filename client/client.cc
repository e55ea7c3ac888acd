#include "client/client.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/encode/codec_tuner.h"
#include "client/encode/push_encoder.h"
#include "client/encode/push_schedule.h"
#include "client/encode/residual_file.h"
#include "client/encode/shard_encoder.h"
#include "client/encode/state_folder.h"
#include "client/encode/wire_meter.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/exchange.h"
#include "client/exchange/status_report.h"
#include "client/exchange/step_progress.h"
#include "client/replica/replica.h"
#include "client/transport/join_leave.h"
#include "client/transport/read_masters.h"
#include "client/transport/stop_signal.h"
#include "common/codec/codec.h"
#include "common/spec/place_tensors.h"
#include "common/status_macros.h"
#include "common/value_hash.h"

namespace thinwire {

namespace {

// Leaves a part of DRAIN for the calls of Leave, which take up to two seconds.
absl::Duration DrainOfSteps(absl::Duration drain) {
  return drain - std::min(absl::Seconds(2), drain / 2);
}

absl::Status CheckInitial(std::span<const TensorShape> tensors,
                          std::span<const std::span<const float>> initial) {
  if (initial.size() != tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("initial: wrong number of tensors (expected ",
                                                   tensors.size(), ", got ", initial.size(), ")"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (initial[i].size() == tensors[i].value_count()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("initial ", tensors[i].name, ": wrong number of values (expected ",
                     tensors[i].value_count(), ", got ", initial[i].size(), ")"));
  }
  return absl::OkStatus();
}

client::ResidualOwner OwnerOf(const ClientOptions& options) {
  return {.job = options.job, .worker = options.worker};
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
      report_(std::make_unique<client::StatusReport>()),
      deals_(std::make_unique<client::DealBook>()) {}

Client::~Client() {
  StopExchange();
  // Finishes the write that StartSaveState has begun.
  if (writer_ != nullptr) writer_->Finish();
}

void Client::StopExchange() {
  if (loop_ == nullptr) return;
  loop_->Run([this] { exchange_->Stop(); });
  if (gradient_loop_ != nullptr) gradient_loop_->Stop();
  loop_->Stop();
  exchange_.reset();
  gradient_loop_.reset();
  loop_.reset();
}

absl::Status Client::Init() {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (device_ != nullptr) RETURN_IF_ERROR(device_->Use());
  RETURN_IF_ERROR(MakeEncoder());
  return MakeReplica();
}

absl::Status Client::MakeEncoder() {
  if (options_.choose.has_value()) {
    ASSIGN_OR_RETURN(tuner_, client::CodecTuner::Make(partition_, options_, device_, threads_));
    report_->set_choices(tuner_->choices());
  } else {
    meter_ = std::make_unique<client::WireMeter>();
  }
  std::unique_ptr<client::ShardEncoder> shards;  // null if gradients are in the host's memory
  if (device_ != nullptr) {
    ASSIGN_OR_RETURN(shards, device_->MakeEncoder(partition_, options_));
  }
  ASSIGN_OR_RETURN(
      encoder_, client::PushEncoder::Make(partition_, options_, tuner_.get(), std::move(shards)));
  return absl::OkStatus();
}

absl::Status Client::MakeReplica() {
  if (device_ == nullptr) {
    replica_ = std::make_unique<client::Replica>(partition_, options_.memory);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<client::ParameterMemory> memory,
                   device_->MakeParameters(partition_));
  replica_ = std::make_unique<client::Replica>(partition_, std::move(memory));
  return absl::OkStatus();
}

absl::StatusOr<Step> Client::Join(std::span<const std::span<const float>> initial) {
  const std::optional<Generation> rollback = progress_->rollback();
  if (loop_ != nullptr && !rollback.has_value()) {
    return absl::FailedPreconditionError("Join: called twice");
  }
  RETURN_IF_ERROR(CheckInitial(partition_.tensors(), initial));
  StopExchange();
  const absl::StatusOr<Step> first = JoinAndStart(initial, rollback);
  if (rollback.has_value() && !first.ok()) {
    // The failure of this Join replaces the rollback, which can be followed only once.
    progress_->Restart();
    progress_->Fail(first.status());
  }
  return first;
}

absl::StatusOr<Step> Client::JoinAndStart(std::span<const std::span<const float>> initial,
                                          std::optional<Generation> rollback) {
  ASSIGN_OR_RETURN(const std::vector<client::SavedPoint> files, OpenStateFolder());
  RETURN_IF_ERROR(replica_->Fill(initial));
  JoinRequest request = client::MakeJoinRequest(options_, partition_);
  request.set_initial_hash(HashTensors(initial));
  if (rollback.has_value()) {
    request.set_incarnation(incarnation_.value);
    request.set_run(run_.value);
    request.set_had_begun(next_ > Step{});
  }
  const client::JoinWait wait = {
      .start_timeout = rollback.has_value()
                           ? std::max(options_.start_timeout, options_.server_return)
                           : options_.start_timeout,
      // After a rollback, another process has taken the number of this one.
      .in_use_timeout = rollback.has_value() ? absl::ZeroDuration() : options_.lease,
      .call_timeout = 3 * options_.silence + options_.lease,
      .report = [this](const std::string& text) { report_->set_waiting(text); }};
  ASSIGN_OR_RETURN(const std::vector<JoinReply> replies,
                   client::JoinServers(transport_, threads_, stop_, wait, request,
                                       rollback.value_or(Generation())));
  report_->set_waiting("");
  const bool returns = Incarnation{replies[0].incarnation()} == incarnation_;
  const Step first = returns ? client::ReturningStep(replies) : client::StartingStep(replies);
  incarnation_ = Incarnation{replies[0].incarnation()};
  run_ = RunId{replies[0].run()};
  if (absl::Status dealt = deals_->Reset(replies[0]); !dealt.ok()) {
    return client::WithServerName(transport_, ServerId{0}, absl::InternalError(dealt.message()));
  }
  if (rollback.has_value()) RETURN_IF_ERROR(RollBackTo(first));
  RETURN_IF_ERROR(StartResiduals(files, replies, first, rollback.has_value()));
  RETURN_IF_ERROR(UseArms(replies[0]));
  next_ = first;
  // Marks the parameters of every shard as missing before the event loop starts, so that a
  // WaitTensor right after Join blocks until the parameters arrive.
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) progress_->ExpectShard(ShardId{s});
  RETURN_IF_ERROR(StartExchange(std::move(request), replies));
  loop_->Post([this, first] { exchange_->Start(first); });
  return first;
}

absl::Status Client::UseArms(const JoinReply& reply) {
  report_->ClearTests();
  trial_.reset();
  encoder_->MeasureErrors(false);
  if (options_.arms.empty()) return absl::OkStatus();
  const auto& candidates = reply.push_candidates();
  const auto unknown = [this](uint32_t arm) { return arm >= options_.arms.size(); };
  if (candidates.size() != kTensorKinds || std::ranges::any_of(candidates, unknown)) {
    return client::WithServerName(
        transport_, ServerId{0},
        absl::InternalError(absl::StrCat("push_candidates: expected ", kTensorKinds,
                                         " numbers below ", options_.arms.size(), ", got [",
                                         absl::StrJoin(candidates, " "), "]")));
  }
  if (reply.has_trial_step()) trial_ = Step{reply.trial_step()};
  KindArms chosen;
  std::ranges::copy(candidates, chosen.begin());
  LOG(INFO) << "pushed as " << ArmNames(options_.arms, chosen)
            << (trial_.has_value() ? absl::StrCat(", in a trial from step ", trial_->value) : "");
  return encoder_->UseCodecs(client::ShardSpecs(options_.arms, chosen, partition_));
}

absl::Status Client::RollBackTo(Step first) {
  report_->Count(WorkerCounters::kRollbacksFieldNumber);
  if (first < next_) report_->Count(WorkerCounters::kRepeatedStepsFieldNumber, next_ - first);
  report_->set_outage("");
  report_->set_checkpoint_step(std::nullopt);
  step_is_partial_ = false;
  if (tuner_ != nullptr) tuner_->meter().Lost();
  progress_->Restart();
  return encoder_->DropBegun();
}

bool Client::rolled_back() const { return progress_->rollback().has_value(); }

absl::StatusOr<std::vector<client::SavedPoint>> Client::OpenStateFolder() {
  std::vector<client::SavedPoint> files;
  if (options_.state_dir.empty()) return files;
  if (writer_ == nullptr) writer_ = threads_.Make();
  writer_->Run([] {});  // waits for the write that StartSaveState has begun
  ASSIGN_OR_RETURN(client::StateFolder folder,
                   client::StateFolder::Open(options_.state_dir, options_.worker));
  folder_ = std::make_unique<const client::StateFolder>(std::move(folder));
  ASSIGN_OR_RETURN(const std::vector<Step> steps, folder_->Steps());
  for (const Step step : steps) {
    const std::string path = folder_->PathOf(step);
    ASSIGN_OR_RETURN(const client::ResidualPoint point,
                     client::ReadResidualPoint(path, OwnerOf(options_), partition_));
    files.push_back({.path = path, .point = point});
  }
  return files;
}

absl::Status Client::StartResiduals(std::span<const client::SavedPoint> files,
                                    std::span<const JoinReply> replies, Step first,
                                    bool after_rollback) {
  client::ResidualStart start = client::DecideResidualStart(
      folder_ == nullptr ? "" : folder_->path(), files, replies, partition_, after_rollback);
  residual_start_ = std::move(start.text);
  client::SavedResiduals saved;
  saved.shards.resize(partition_.shard_count());
  if (!start.path.empty()) {
    ASSIGN_OR_RETURN(saved, client::ReadResiduals(start.path, OwnerOf(options_), partition_));
  }
  // A shard that is not restored loses the residual in memory or, at the start of a process, the
  // residual in the file.
  std::vector<client::ShardResidualsView> present = client::ViewsOf(saved.shards);
  if (after_rollback) {
    ASSIGN_OR_RETURN(present, encoder_->residuals());
  }
  uint64_t dropped_count = 0;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) {
    if (start.restored[s]) continue;
    if (!present[s].residual.empty() || !present[s].momentum.empty()) ++dropped_count;
    saved.shards[s] = {};
  }
  if (dropped_count > 0) {
    report_->Count(WorkerCounters::kDroppedResidualsFieldNumber, dropped_count);
    absl::StrAppend(&residual_start_, residual_start_.empty() ? "" : "; ", "the residuals of ",
                    dropped_count, dropped_count == 1 ? " shard are" : " shards are", " dropped");
  }
  RETURN_IF_ERROR(encoder_->Restore(std::move(saved)));
  return folder_ == nullptr ? absl::OkStatus() : folder_->RemoveAbove(first);
}

absl::Status Client::StartExchange(JoinRequest request, const std::vector<JoinReply>& replies) {
  loop_ = threads_.Make();
  exchange_ = std::make_unique<client::Exchange>(client::ExchangeParts{.options = options_,
                                                                       .partition = partition_,
                                                                       .transport = transport_,
                                                                       .loop = loop_,
                                                                       .replica = *replica_,
                                                                       .encoder = *encoder_,
                                                                       .tuner = tuner_.get(),
                                                                       .meter = meter(),
                                                                       .progress = *progress_,
                                                                       .report = *report_,
                                                                       .deals = *deals_},
                                                 std::move(request), replies);
  if (device_ == nullptr) return absl::OkStatus();
  gradient_loop_ = threads_.Make();
  absl::Status used;
  loop_->Run([&] { used = device_->Use(); });
  if (used.ok()) gradient_loop_->Run([&] { used = device_->Use(); });
  return used;
}

absl::StatusOr<std::vector<Deal>> Client::WaitDealt(Step step, size_t known) {
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  bool waited = false;
  while (!deals_->Wait(step, waited ? options_.heartbeat_interval : absl::ZeroDuration())) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for a heartbeat");
    if (!waited) {
      report_->set_waiting(absl::StrCat("step ", step.value, ": waits for server 0 to deal it"));
    }
    waited = true;
    loop_->Post([this] { exchange_->HeartbeatToLead(); });
  }
  if (waited) report_->set_waiting("");
  return deals_->DealsAfter(known);
}

void Client::BeginEpoch(uint64_t epoch, Step begin) { deals_->BeginEpoch(epoch, begin); }

bool Client::IsDealt(Step step) const { return deals_->Wait(step, absl::ZeroDuration()); }

void Client::StartErrorMeasurement() {
  loop_->Run([&] { encoder_->MeasureErrors(true); });
}

std::optional<double> Client::StopErrorMeasurement() {
  std::optional<double> ratio;
  loop_->Run([&] {
    if (encoder_->measures_errors()) ratio = encoder_->error().ratio();
    encoder_->MeasureErrors(false);
  });
  return ratio;
}

void Client::ReportTest(const PrecisionTest& test) {
  report_->AddTest(test);
  loop_->Post([this] { exchange_->HeartbeatToLead(); });
}

bool Client::retired() const { return deals_->retired(); }

client::WireMeter& Client::meter() { return tuner_ != nullptr ? tuner_->meter() : *meter_; }

void Client::BeginStep(Step step, uint32_t examples, float scale) {
  progress_->BeginStep();
  loop_->Post([=, this] { exchange_->pushes().BeginStep(step, examples, scale); });
}

template <typename Wait>
auto Client::CountWait(int field_number, Wait wait) {
  const absl::Time begin = threads_.Now();
  report_->BeginWait();
  auto result = wait();
  report_->EndWait(threads_.Now() - begin, field_number);
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
    exchange_->pushes().Ready(tensor, gradient, std::move(owner));
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
    loop_->Post([this, computed] { exchange_->Fail(computed); });
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
  report_->AskForEvaluator();
  return next_;
}

void Client::Stop() {
  stop_->Set();
  progress_->Stop();
}

absl::StatusOr<std::optional<Step>> Client::AwaitCommonStop(absl::Duration longest) {
  if (step_is_partial_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next_.value, ": not all pushes have a verdict"));
  }
  report_->set_stops_before(next_);
  const absl::Time end =
      std::min(threads_.Now() + longest, progress_->drain_end() - options_.drain / 2);
  // A failure does not end the wait for a heartbeat, so each wait is short.
  std::optional<Step> stop;
  do {
    RETURN_IF_ERROR(progress_->failure());
    loop_->Post([this] { exchange_->HeartbeatToLead(); });
    stop = report_->WaitForStopStep(std::min(options_.heartbeat_interval, end - threads_.Now()));
  } while (!stop.has_value() && threads_.Now() < end);
  if (stop.has_value()) progress_->Drain();
  return stop;
}

absl::StatusOr<bool> Client::StartDraining(absl::Duration compute_time) {
  absl::StatusOr<double> norm;
  std::optional<double> goodput;
  loop_->Run([&] {
    norm = encoder_->ResidualNorm();
    goodput = meter().goodput();
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
  loop_->Run([&] { encoder_->SendDense(codec); });
  progress_->Drain();
  return true;
}

absl::StatusOr<double> Client::ResidualNorm() {
  if (ReturnsPending()) RETURN_IF_ERROR(progress_->WaitAll());
  absl::StatusOr<double> norm;
  loop_->Run([&] {
    if (encoder_->may_finish()) {
      norm = absl::FailedPreconditionError("the last step is still being encoded");
    } else {
      norm = encoder_->ResidualNorm();
    }
    if (norm.ok()) *norm += exchange_->UnjudgedNorm();
  });
  return norm;
}

bool Client::ReturnsPending() {
  bool pending = false;
  loop_->Run([&] { pending = exchange_->returns_pending(); });
  return pending;
}

absl::StatusOr<std::vector<client::ShardResidualsView>> Client::CurrentResiduals() {
  if (loop_ == nullptr) return absl::FailedPreconditionError("no server is joined");
  if (step_is_partial_) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", next_.value, ": not all pushes have a verdict"));
  }
  if (ReturnsPending()) RETURN_IF_ERROR(progress_->WaitAll());
  // At this point the servers have accepted or rejected every push, and the residuals contain all
  // values that gTop-k did not select. The event loop does not use the encoder again before the
  // next step begins.
  absl::StatusOr<std::vector<client::ShardResidualsView>> residuals;
  loop_->Run([&] { residuals = encoder_->residuals(); });
  return residuals;
}

absl::Status Client::WriteState(const client::ResidualPoint& point,
                                std::span<const client::ShardResidualsView> residuals,
                                const WriteBeside& beside) const {
  const std::string path = folder_->PathOf(point.step);
  if (beside != nullptr) RETURN_IF_ERROR(beside(path));
  RETURN_IF_ERROR(client::WriteResiduals(path, OwnerOf(options_), partition_, point, residuals));
  return folder_->RemoveOld();
}

absl::Status Client::SaveState(const WriteBeside& beside) {
  if (options_.state_dir.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<client::ShardResidualsView> residuals, CurrentResiduals());
  absl::Status written;
  writer_->Run([&] { written = WriteState({run_, next_}, residuals, beside); });
  return written;
}

absl::Status Client::StartSaveState(WriteBeside beside) {
  if (options_.state_dir.empty()) return absl::OkStatus();
  if (writing_) {
    return absl::UnavailableError(absl::StrCat(
        folder_->PathOf(next_), ": not saved, because an earlier state is still being written"));
  }
  ASSIGN_OR_RETURN(const std::vector<client::ShardResidualsView> residuals, CurrentResiduals());
  const auto copy = std::make_shared<client::SavedResiduals>();
  copy->point = {run_, next_};
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
  return !options_.state_dir.empty() && report_->checkpoint_step() == next_;
}

absl::Status Client::Leave(bool finished) {
  if (incarnation_ == Incarnation{}) return absl::OkStatus();
  std::optional<ServerId> lost;
  if (loop_ != nullptr) {
    loop_->Run([this, &lost] {
      exchange_->Stop();
      lost = exchange_->lost();
    });
  }
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < options_.server_count; ++s) {
    if (lost != ServerId{s}) servers.push_back(ServerId{s});
  }
  LeaveRequest request;
  request.set_worker(options_.worker.value);
  request.set_incarnation(incarnation_.value);
  request.set_run(run_.value);
  request.set_finished(finished);
  const absl::Status failure = progress_->failure();
  const absl::Duration patience = failure.ok() ? options_.silence : absl::ZeroDuration();
  const absl::Status left =
      client::LeaveServers(transport_, threads_, *stop_, patience, std::move(servers), request);
  return failure.ok() ? left : failure;
}

absl::Status Client::WaitUntilAlone() {
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  while (!report_->WaitUntilAlone(options_.worker, options_.server_count,
                                  options_.heartbeat_interval)) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for other workers");
    const std::vector<WorkerId> others = report_->LiveExcept(options_.worker);
    if (others.empty()) continue;  // some server has not answered a heartbeat yet
    report_->set_waiting(absl::StrCat("waits until worker", others.size() == 1 ? " " : "s ",
                                      absl::StrJoin(others, ", ", absl::StreamFormatter()),
                                      others.size() == 1 ? " has left" : " have left"));
  }
  report_->set_waiting("");
  return progress_->failure();
}

void Client::Pause(absl::Duration duration) { stop_->Wait(duration); }

absl::Status Client::RefreshLive() {
  // The next reply may belong to a heartbeat that was sent before this call.
  const uint64_t count = report_->lead_report_count() + 2;
  // A failure and Stop do not end the wait for a heartbeat, so each wait is short.
  while (!report_->WaitForLeadReports(count, options_.heartbeat_interval)) {
    RETURN_IF_ERROR(progress_->failure());
    if (stop_->is_set()) return absl::CancelledError("stopped while waiting for a heartbeat");
  }
  return progress_->failure();
}

absl::StatusOr<WorkerId> Client::Evaluator() {
  report_->AskForEvaluator();
  while (!report_->evaluator().has_value()) {
    loop_->Run([this] { exchange_->HeartbeatToLead(); });
    RETURN_IF_ERROR(RefreshLive());
  }
  return *report_->evaluator();
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

std::span<float> Client::replica(uint32_t tensor) { return replica_->tensor(tensor); }
std::vector<WorkerId> Client::live() const { return report_->live(); }
std::string Client::waiting() const { return report_->waiting(); }
std::vector<GroupCodec> Client::choices() const { return report_->choices(); }
WorkerCounters Client::counters() const { return report_->counters(); }

}  // namespace thinwire
