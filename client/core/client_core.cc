#include "client/core/client_core.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/encode/push_schedule.h"
#include "client/encode/shard_encoder.h"
#include "client/transport/join_leave.h"
#include "common/base/status_macros.h"
#include "common/model/value_hash.h"
#include "proto/worker_event.pb.h"

namespace thinwire::client {

absl::StatusOr<std::unique_ptr<ClientCore>> ClientCore::Make(
    const ClientOptions& options, const Partition& partition, Transport& transport,
    std::shared_ptr<Executor> loop, StepListener& listener, const Device* device) {
  std::unique_ptr<ClientCore> core(
      new ClientCore(options, partition, transport, std::move(loop), listener, device));
  RETURN_IF_ERROR(core->Init());
  return core;
}

ClientCore::ClientCore(const ClientOptions& options, const Partition& partition,
                       Transport& transport, std::shared_ptr<Executor> loop, StepListener& listener,
                       const Device* device)
    : options_(options),
      partition_(partition),
      transport_(transport),
      loop_(std::move(loop)),
      listener_(listener),
      device_(device),
      restore_(options, partition) {}

absl::Status ClientCore::Init() {
  RETURN_IF_ERROR(CheckOptions(options_));
  if (device_ != nullptr) RETURN_IF_ERROR(device_->Use());
  RETURN_IF_ERROR(MakeEncoder());
  RETURN_IF_ERROR(MakeReplica());
  parts_.emplace(ExchangeParts{.options = options_,
                               .partition = partition_,
                               .transport = transport_,
                               .loop = loop_,
                               .replica = *replica_,
                               .encoder = *encoder_,
                               .tuner = tuner_.get(),
                               .meter = tuner_ != nullptr ? tuner_->meter() : *meter_,
                               .listener = listener_,
                               .report = report_,
                               .worker_news = worker_news_,
                               .job_news = job_news_,
                               .deals = deals_});
  return absl::OkStatus();
}

absl::Status ClientCore::MakeEncoder() {
  if (options_.choose.has_value()) {
    ASSIGN_OR_RETURN(tuner_, CodecTuner::Make(partition_, options_, device_, *loop_));
    report_.set_choices(tuner_->choices());
  } else {
    meter_ = std::make_unique<WireMeter>();
  }
  std::unique_ptr<ShardEncoder> shards;  // null if gradients are in the host's memory
  if (device_ != nullptr) {
    ASSIGN_OR_RETURN(shards, device_->MakeEncoder(partition_, options_));
  }
  LiveResiduals* const live = device_ == nullptr ? restore_.MakeLive() : nullptr;
  ASSIGN_OR_RETURN(encoder_,
                   PushEncoder::Make(partition_, options_, tuner_.get(), std::move(shards), live));
  return absl::OkStatus();
}

absl::Status ClientCore::MakeReplica() {
  if (device_ == nullptr) {
    replica_ = std::make_unique<Replica>(partition_, options_.memory);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterMemory> memory, device_->MakeParameters(partition_));
  replica_ = std::make_unique<Replica>(partition_, std::move(memory));
  return absl::OkStatus();
}

absl::Status ClientCore::CheckInitial(std::span<const std::span<const float>> initial) const {
  const std::vector<TensorShape>& tensors = partition_.tensors();
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

void ClientCore::Join(std::span<const std::span<const float>> initial, JoinDone done) {
  std::optional<Generation> rollback;
  if (exchange_ != nullptr) {
    rollback = exchange_->rollback();
    if (!rollback.has_value()) {
      return done(absl::FailedPreconditionError("Join: called twice"));
    }
    next_ = exchange_->next();
  }
  exchange_.reset();
  const bool after_rollback = rollback.has_value();
  absl::StatusOr<JoinRequest> request = PrepareJoin(initial, after_rollback);
  if (!request.ok()) return done(request.status());
  absl::Duration start_timeout = options_.start_timeout;
  if (after_rollback) {
    start_timeout = std::max(start_timeout, options_.server_return);
  } else if (options_.wait_for_servers) {
    start_timeout = absl::InfiniteDuration();
  }
  const JoinWait wait = {.start_timeout = start_timeout,
                         // After a rollback, another process has taken the number of this one.
                         .in_use_timeout = after_rollback ? absl::ZeroDuration() : options_.lease,
                         .call_timeout = 3 * options_.silence + options_.lease,
                         .report = [this](const std::string& text) { report_.set_waiting(text); }};
  joining_ = std::make_unique<Joining>(
      transport_, loop_, wait, *request, rollback.value_or(Generation()),
      [this, request = *request, after_rollback,
       done = std::move(done)](absl::StatusOr<std::vector<JoinReply>> replies) {
        const absl::StatusOr<Step> first = OnJoined(request, after_rollback, std::move(replies));
        joining_.reset();
        done(first);
      });
  if (stopped_) joining_->Cancel();
  joining_->Start();
}

absl::StatusOr<JoinRequest> ClientCore::PrepareJoin(std::span<const std::span<const float>> initial,
                                                    bool after_rollback) {
  RETURN_IF_ERROR(CheckInitial(initial));
  RETURN_IF_ERROR(restore_.Open());
  RETURN_IF_ERROR(replica_->Fill(initial));
  JoinRequest request = MakeJoinRequest(options_, partition_);
  // The members of a worker have different tensors.
  const uint64_t own_hash = partition_.is_part() ? 0 : HashTensors(initial);
  request.set_initial_hash(options_.initial_hash.value_or(own_hash));
  if (after_rollback) {
    request.set_incarnation(joined_run_.incarnation.value);
    request.set_run(joined_run_.run.value);
    request.set_had_begun(next_ > Step{});
  }
  return request;
}

absl::StatusOr<Step> ClientCore::OnJoined(const JoinRequest& request, bool after_rollback,
                                          absl::StatusOr<std::vector<JoinReply>> replies) {
  RETURN_IF_ERROR(replies.status());
  // The shards of other members may have opened already. They do not decide at which step this one
  // begins.
  for (JoinReply& reply : *replies) ToLocal(partition_, reply);
  const JoinReply& lead = replies->front();
  report_.set_waiting("");
  const bool returns = Incarnation{lead.incarnation()} == joined_run_.incarnation;
  const Step first = returns ? ReturningStep(*replies) : StartingStep(*replies);
  joined_run_.incarnation = Incarnation{lead.incarnation()};
  joined_run_.run = RunId{lead.run()};
  if (absl::Status dealt = deals_.Reset(lead); !dealt.ok()) {
    return WithServerName(transport_, ServerId{0}, absl::InternalError(dealt.message()));
  }
  if (after_rollback) RETURN_IF_ERROR(RollBackTo(first));
  RETURN_IF_ERROR(restore_.Restore(*replies, first, after_rollback, *encoder_));
  if (const uint64_t dropped = restore_.dropped_count(); dropped > 0) {
    report_.Count(WorkerCounters::kDroppedResidualsFieldNumber, dropped);
  }
  RETURN_IF_ERROR(UseArms(lead));
  exchange_ = std::make_unique<Exchange>(*parts_, request, *replies);
  exchange_->Start(first);
  return first;
}

absl::Status ClientCore::UseArms(const JoinReply& reply) {
  worker_news_.ClearTests();
  joined_run_.trial.reset();
  encoder_->MeasureErrors(false);
  if (options_.arms.empty()) return absl::OkStatus();
  const auto& candidates = reply.push_candidates();
  const auto unknown = [this](uint32_t arm) { return arm >= options_.arms.size(); };
  if (candidates.size() != kTensorKinds || std::ranges::any_of(candidates, unknown)) {
    return WithServerName(
        transport_, ServerId{0},
        absl::InternalError(absl::StrCat("push_candidates: expected ", kTensorKinds,
                                         " numbers below ", options_.arms.size(), ", got [",
                                         absl::StrJoin(candidates, " "), "]")));
  }
  if (reply.has_trial_step()) joined_run_.trial = Step{reply.trial_step()};
  std::ranges::copy(candidates, joined_run_.arms.begin());
  LOG(INFO) << "pushed as " << ArmNames(options_.arms, joined_run_.arms)
            << (joined_run_.trial.has_value()
                    ? absl::StrCat(", in a trial from step ", joined_run_.trial->value)
                    : "");
  return encoder_->UseCodecs(ShardSpecs(options_.arms, joined_run_.arms, partition_));
}

absl::Status ClientCore::RollBackTo(Step first) {
  report_.Count(WorkerCounters::kRollbacksFieldNumber);
  if (first < next_) report_.Count(WorkerCounters::kRepeatedStepsFieldNumber, next_ - first);
  report_.set_outage("");
  job_news_.Resume();
  if (tuner_ != nullptr) tuner_->meter().Lost();
  return encoder_->DropBegun();
}

void ClientCore::Leave(const LeaveReason& reason, absl::Duration patience, LeaveDone done) {
  if (joined_run_.incarnation == Incarnation{}) return done(absl::OkStatus());
  std::optional<ServerId> lost;
  if (exchange_ != nullptr) {
    exchange_->Stop();
    lost = exchange_->lost();
  }
  std::vector<ServerId> servers;
  for (uint32_t s = 0; s < options_.server_count; ++s) {
    if (lost != ServerId{s}) servers.push_back(ServerId{s});
  }
  LeaveRequest request;
  request.set_worker(options_.worker.value);
  request.set_member(options_.member);
  request.set_incarnation(joined_run_.incarnation.value);
  request.set_run(joined_run_.run.value);
  request.set_finished(reason.finished);
  request.set_failed(reason.failed);
  request.set_diverged(reason.diverged);
  leaving_ = std::make_unique<Leaving>(transport_, loop_, patience, std::move(servers),
                                       std::move(request), std::move(done));
  if (stopped_) leaving_->Hurry();
  leaving_->Start();
}

void ClientCore::Stop() {
  stopped_ = true;
  if (joining_ != nullptr) joining_->Cancel();
  if (leaving_ != nullptr) leaving_->Hurry();
}

void ClientCore::StopExchange() {
  if (exchange_ != nullptr) exchange_->Stop();
}

void ClientCore::BeginStep(Step step, uint32_t examples, float scale, float rate_factor) {
  if (exchange_ != nullptr) exchange_->pushes().BeginStep(step, examples, scale, rate_factor);
}

void ClientCore::Ready(uint32_t tensor, std::span<const float> gradient,
                       std::shared_ptr<const void> owner) {
  if (exchange_ != nullptr) exchange_->pushes().Ready(tensor, gradient, std::move(owner));
}

void ClientCore::ReadyFragment(uint32_t fragment, std::span<const std::span<const float>> tensors) {
  if (exchange_ != nullptr) exchange_->pushes().ReadyFragment(fragment, tensors);
}

std::optional<Step> ClientCore::Settle() {
  return exchange_ == nullptr ? std::nullopt : std::optional(exchange_->pushes().Settle());
}

void ClientCore::Fail(absl::Status failure) {
  if (exchange_ != nullptr) exchange_->Fail(std::move(failure));
}

void ClientCore::HeartbeatToLead() {
  if (exchange_ != nullptr) exchange_->HeartbeatToLead();
}

}  // namespace thinwire::client
