#include "sim/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/core/residual_restore.h"
#include "client/encode/residual_file.h"
#include "client/encode/worker_folder.h"
#include "proto/precision.pb.h"

namespace thinwire::sim {

VirtualWorker::VirtualWorker(const VirtualTask& task, const Partition& partition,
                             ClientOptions options, std::unique_ptr<Transport> transport,
                             ExecutorFactory& time, PushedExamples& pushed, ClusterLedger& ledger,
                             Mutant mutant, Joined joined)
    : task_(task),
      partition_(partition),
      options_(std::move(options)),
      transport_(std::move(transport)),
      time_(time),
      loop_(time.Make()),
      pushed_(pushed),
      ledger_(ledger),
      mutant_(mutant),
      joined_(std::move(joined)),
      stays_(task.stays),
      missing_(partition.shard_count(), false) {
  for (const TensorShape& tensor : task_.tensors) gradient_.emplace_back(tensor.value_count());
  if (task_.data.has_value()) {
    SamplerOptions data = *task_.data;
    data.worker = options_.worker;
    sampler_.emplace(data);
  }
  if (task_.accuracy != nullptr && options_.worker == WorkerId{0})
    tests_.emplace(task_.trial_steps);
  auto core = client::ClientCore::Make(options_, partition_, *transport_, loop_, *this);
  if (core.ok()) {
    core_ = *std::move(core);
  } else {
    Fail(core.status());
  }
}

VirtualWorker::~VirtualWorker() {
  if (core_ != nullptr) {
    core_->StopExchange();
    KeepResiduals();
  }
  loop_->Stop();
}

void VirtualWorker::KeepResiduals() {
  const auto residuals = core_->encoder().residuals();
  if (!residuals.ok()) return;
  ledger_.Keep(options_.worker, core_->incarnation(), pushed_until_,
               std::max(step_, pushed_until_.value_or(step_)), *residuals);
}

void VirtualWorker::Join() {
  if (state_ == State::kFailed) return;
  state_ = State::kJoining;
  missing_.assign(missing_.size(), false);
  std::vector<std::span<const float>> initial(task_.initial.begin(), task_.initial.end());
  core_->Join(initial, [this](absl::StatusOr<Step> first) {
    if (!first.ok()) return Fail(first.status());
    state_ = State::kTraining;
    step_ = *first;
    saves_ = true;
    pushed_until_.reset();
    tested_.reset();
    if (mutant_ == Mutant::kResidualOfAnotherStep) RestoreNewest();
    joined_(/*came_back=*/life_ > 0, step_);
    BeginInLedger();
    pushed_.erase(pushed_.lower_bound(step_), pushed_.end());
    if (sampler_.has_value()) sampler_->ForgetDeals();
    ContinueLater();
  });
}

void VirtualWorker::OnShardArrived(ShardId shard) {
  missing_[shard.value] = false;
  ContinueLater();
}

void VirtualWorker::OnStepJudged(Step next) {
  step_ = next;
  computing_ = false;
  ContinueLater();
}

void VirtualWorker::OnFailure(absl::Status failure) { Fail(std::move(failure)); }

void VirtualWorker::OnRollback(Generation) {
  if (state_ == State::kFailed) return;
  Tell("follows the servers back");
  ++life_;
  computing_ = false;
  over_ = false;
  state_ = State::kJoining;
  loop_->Post([this] { Join(); });
}

void VirtualWorker::ContinueLater() {
  loop_->Post([this] { Continue(); });
}

void VirtualWorker::Continue() {
  if (state_ != State::kTraining || computing_) return;
  TestTrial();
  if (!IsDealt()) return;
  if (core_->deals().retired()) return Leave();
  over_ = IsOver();
  if (over_) {
    // Values that gTop-k did not select may not have come back yet.
    if (!core_->exchange().returns_pending()) CheckInLedger(/*with_replica=*/false);
    if (!stays_) Leave();
    return;
  }
  if (std::ranges::find(missing_, true) != missing_.end()) return;
  computing_ = true;
  loop_->PostAt(time_.Now() + task_.time(options_.worker, step_), [this, life = life_] {
    if (life == life_ && state_ == State::kTraining) Compute();
  });
}

bool VirtualWorker::IsDealt() {
  if (!sampler_.has_value()) return true;
  client::DealBook& deals = core_->deals();
  if (!deals.Wait(step_, absl::ZeroDuration())) {
    if (std::exchange(asks_, true)) return false;
    core_->HeartbeatToLead();
    loop_->PostAt(time_.Now() + options_.heartbeat_interval, [this] {
      asks_ = false;
      Continue();
    });
    return false;
  }
  for (const Deal& deal : deals.DealsAfter(sampler_->deal_count())) sampler_->Add(deal);
  const uint64_t epoch = sampler_->epoch(step_);
  const Step begin = sampler_->EpochBegin(epoch);
  if (begin <= step_) deals.BeginEpoch(epoch, begin);
  return true;
}

void VirtualWorker::TestTrial() {
  const std::optional<Step> begin = core_->trial();
  if (!tests_.has_value() || !begin.has_value() || step_ < *begin || tested_ == step_) return;
  if (!tests_->IsDue(step_ - *begin) || std::ranges::find(missing_, true) != missing_.end()) return;
  tested_ = step_;
  tests_->Arrive(*begin, step_, time_.Now() - absl::UnixEpoch());
  PrecisionTest test;
  test.set_step(step_.value);
  test.set_accuracy(task_.accuracy(*begin, step_));
  if (const auto seconds = tests_->seconds_per_step()) test.set_seconds_per_step(*seconds);
  test.set_end(sampler_->EpochBegin(task_.data->epochs).value);
  core_->report().AddTest(test);
  core_->HeartbeatToLead();
}

void VirtualWorker::BeginInLedger() {
  const auto residuals = core_->encoder().residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  const bool has_residuals =
      std::ranges::any_of(*residuals, [](const auto& shard) { return client::HasValues(shard); });
  Tell(absl::StrCat("has joined at step ", step_.value, has_residuals ? " with residuals" : ""));
  ledger_.Begin(options_.worker, core_->incarnation(), *residuals);
}

void VirtualWorker::CheckInLedger(bool with_replica) {
  const auto residuals = core_->encoder().residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  ledger_.Check(options_.worker, core_->incarnation(), *residuals,
                core_->report().counters().lost_gtopk_returns(),
                with_replica ? &core_->replica() : nullptr);
}

void VirtualWorker::SaveResiduals() {
  const client::WorkerFolder* const folder = core_->restored().folder();
  if (folder == nullptr) return;
  if (!std::exchange(saves_, false) && core_->report().checkpoint_step() != step_) return;
  const auto residuals = core_->encoder().residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  absl::Status saved = client::WriteResiduals(folder->PathOf(step_), client::OwnerOf(options_),
                                              partition_, {core_->run(), step_}, *residuals);
  if (saved.ok()) saved = folder->RemoveOld();
  if (!saved.ok()) return Fail(std::move(saved));
  ledger_.Keep(options_.worker, core_->incarnation(), step_, step_, *residuals);
}

void VirtualWorker::RestoreNewest() {
  const client::WorkerFolder* const folder = core_->restored().folder();
  if (folder == nullptr) return;
  const auto steps = folder->Steps();
  if (!steps.ok() || steps->empty()) return;
  auto saved =
      client::ReadResiduals(folder->PathOf(steps->back()), client::OwnerOf(options_), partition_);
  if (!saved.ok()) return Fail(saved.status());
  const absl::Status restored = core_->encoder().Restore(*std::move(saved));
  if (!restored.ok()) Fail(restored);
}

void VirtualWorker::LeaveWhenTrained() {
  stays_ = false;
  ContinueLater();
}

void VirtualWorker::Compute() {
  CheckInLedger(/*with_replica=*/true);
  SaveResiduals();
  std::vector<std::span<const float>> parameters;
  for (uint32_t i = 0; i < gradient_.size(); ++i) {
    parameters.push_back(core_->replica().tensor(i));
    std::ranges::fill(gradient_[i], 0.0f);
  }
  std::vector<uint32_t> examples;
  if (sampler_.has_value()) {
    const std::span<const uint32_t> batch = sampler_->Batch(step_);
    examples.assign(batch.begin(), batch.end());
    pushed_[step_] = examples;
  }
  const uint32_t count = task_.gradient(
      {.worker = options_.worker, .step = step_, .parameters = parameters, .examples = examples},
      gradient_);
  if (count > 0) ledger_.AddProduced(options_.worker, core_->incarnation(), gradient_, count);
  core_->BeginStep(step_, count, 1);
  for (uint32_t i = gradient_.size(); i-- > 0;) core_->Ready(i, gradient_[i], nullptr);
}

void VirtualWorker::Leave() {
  state_ = State::kLeaving;
  core_->Leave(/*finished=*/true, options_.silence, [this](const absl::Status& left) {
    if (!left.ok()) return Fail(left);
    Tell("has left");
    state_ = State::kFinished;
  });
}

bool VirtualWorker::lost_number() const {
  return absl::IsAlreadyExists(failure_) || absl::StrContains(failure_.message(), "this number");
}

void VirtualWorker::Fail(absl::Status failure) {
  if (state_ == State::kFinished || state_ == State::kFailed) return;
  Tell(absl::StrCat("fails: ", failure.message()));
  state_ = State::kFailed;
  failure_ = std::move(failure);
}

void VirtualWorker::Tell(const std::string& text) const {
  ledger_.Tell(absl::StrCat("w", options_.worker.value, "/", incarnation().value, " ", text));
}

}  // namespace thinwire::sim
