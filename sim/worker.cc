#include "sim/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/core/residual_restore.h"
#include "client/encode/push_schedule.h"
#include "client/encode/residual_file.h"
#include "client/encode/worker_folder.h"
#include "common/model/fragments.h"

namespace thinwire::sim {

VirtualWorker::VirtualWorker(const VirtualTask& task, const Partition& partition,
                             ClientOptions options, std::unique_ptr<Transport> transport,
                             ExecutorFactory& time, PushedExamples& pushed,
                             ClusterObserver& observer, Mutant mutant, Joined joined,
                             std::function<void()> failed)
    : task_(task),
      partition_(partition),
      options_(std::move(options)),
      transport_(std::move(transport)),
      time_(time),
      loop_(time.Make()),
      pushed_(pushed),
      observer_(observer),
      mutant_(mutant),
      joined_(std::move(joined)),
      failed_(std::move(failed)),
      stays_(task.stays),
      missing_(partition.shard_count(), false),
      used_(partition.shard_count(), false) {
  if (task_.data.has_value()) {
    SamplerOptions data = *task_.data;
    data.worker = options_.worker;
    sampler_.emplace(data);
  }
  auto core = client::ClientCore::Make(options_, partition_, *transport_, loop_, *this);
  if (!core.ok()) {
    Fail(core.status());
    return;
  }
  core_ = *std::move(core);
  if (task_.trial_steps > 0) trial_tests_.emplace(task_.trial_steps);
  for (uint32_t i = 0; i < task_.tensors.size(); ++i)
    parameters_.push_back(core_->parts().replica.tensor(i));
  if (task_.streaming.has_value()) {
    streaming_.emplace(partition_);
    fragments_ = DealFragments(partition_, task_.streaming->spec.fragments);
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
  const auto residuals = core_->parts().encoder.residuals();
  if (!residuals.ok()) return;
  observer_.Keep(options_.worker, core_->joined_run().incarnation, pushed_until_,
                 std::max(step_, pushed_until_.value_or(step_)), *residuals);
}

void VirtualWorker::Join() {
  if (state_ == State::kFailed) return;
  state_ = State::kJoining;
  missing_.assign(missing_.size(), false);
  used_.assign(used_.size(), false);
  unjudged_count_ = 0;
  std::vector<std::span<const float>> initial(task_.initial.begin(), task_.initial.end());
  core_->Join(initial, [this](absl::StatusOr<Step> first) {
    if (!first.ok()) return Fail(first.status());
    state_ = State::kTraining;
    step_ = *first;
    saves_ = true;
    pushed_until_.reset();
    tested_.reset();
    if (absl::Status used = UseFastest(); !used.ok()) return Fail(used);
    if (mutant_ == Mutant::kResidualOfAnotherStep) RestoreNewest();
    joined_(/*came_back=*/life_ > 0, step_);
    TellBegin();
    pushed_.erase(pushed_.lower_bound(step_), pushed_.end());
    if (sampler_.has_value()) sampler_->ForgetDeals();
    deals_.clear();
    ContinueLater();
  });
}

bool VirtualWorker::OnShardChanging(ShardId shard) {
  if (used_[shard.value]) return false;
  missing_[shard.value] = true;
  return true;
}

void VirtualWorker::OnUnjudged(size_t count) {
  unjudged_count_ = count;
  ContinueLater();
}

void VirtualWorker::OnShardArrived(ShardId shard) {
  missing_[shard.value] = false;
  ContinueLater();
}

void VirtualWorker::OnNextStep(Step next) {
  if (training_ || !moves_.empty()) {
    next_ = next;
    return;
  }
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
  // The worker goes on from the servers' parameters.
  if (streaming_.has_value()) streaming_->Forget();
  moves_.clear();
  training_ = false;
  next_.reset();
  over_ = false;
  state_ = State::kJoining;
  loop_->Post([this] { Join(); });
}

void VirtualWorker::ContinueLater() {
  loop_->Post([this] { Continue(); });
}

void VirtualWorker::Continue() {
  if (state_ == State::kTraining && !moves_.empty()) return Stream();
  if (state_ != State::kTraining || computing_ || !TestTrial() || !IsDealt()) return;
  if (!Settle()) return;
  if (core_->parts().deals.retired()) return Leave();
  over_ = IsOver();
  if (over_) {
    // Values that gTop-k did not select may not have come back yet.
    if (!core_->exchange().returns_pending()) TellState(/*with_replica=*/false);
    observer_.OnTrained(options_.worker);
    if (!stays_) Leave();
    return;
  }
  if (std::ranges::find(missing_, true) != missing_.end()) return;
  computing_ = true;
  used_.assign(used_.size(), true);
  examples_.clear();
  if (sampler_.has_value()) {
    const std::span<const uint32_t> batch = sampler_->Batch(step_);
    examples_.assign(batch.begin(), batch.end());
  }
  if (streaming_.has_value()) {
    const VirtualLocalSteps::Plan plan = task_.streaming->plan(StepNow());
    if (plan.examples > 0) return BeginStreaming(plan);
  }
  loop_->PostAt(time_.Now() + task_.time(StepNow()), [this, life = life_] {
    if (life == life_ && state_ == State::kTraining) Compute();
  });
}

VirtualStep VirtualWorker::StepNow() const {
  return {.worker = options_.worker,
          .step = step_,
          .parameters = parameters_,
          .examples = examples_,
          .deals = deals_};
}

absl::Status VirtualWorker::UseFastest() {
  if (task_.fastest.empty()) return absl::OkStatus();
  std::vector<std::optional<CodecSpec>> codecs(partition_.shard_count());
  if (!options_.arms.empty()) {
    codecs = client::ShardSpecs(options_.arms, core_->joined_run().arms, partition_);
  }
  for (size_t s = 0; s < codecs.size(); ++s) {
    if (!codecs[s].has_value()) codecs[s] = task_.fastest[s];
  }
  return core_->parts().encoder.UseCodecs(std::move(codecs));
}

std::optional<Step> VirtualWorker::trial() const {
  const std::optional<Step> begin = core_ == nullptr ? std::nullopt : core_->joined_run().trial;
  return begin.has_value() && step_ < *begin + task_.trial_steps ? begin : std::nullopt;
}

bool VirtualWorker::TestTrial() {
  const std::optional<Step> begin = core_->joined_run().trial;
  if (!trial_tests_.has_value() || !begin.has_value() || tested_ == step_) return true;
  const Step end = sampler_.has_value() ? sampler_->EpochBegin(task_.data->epochs) : task_.last;
  if (!trial_tests_->IsDue(*begin, step_, end)) return true;
  if (std::ranges::find(missing_, true) != missing_.end()) return false;
  tested_ = step_;
  trial_tests_->Arrive(*begin, step_, time_.Now() - absl::UnixEpoch());
  client::PushEncoder& encoder = core_->parts().encoder;
  std::optional<double> error;
  if (step_ == *begin + task_.trial_steps && encoder.measures_errors()) {
    error = encoder.error().ratio();
    encoder.MeasureErrors(false);
  }
  if (trial_tests_->BeginsMeasuredParts(step_ - *begin)) encoder.MeasureErrors(true);
  if (options_.worker != WorkerId{0}) return true;
  const absl::StatusOr<double> accuracy = task_.test(StepNow());
  if (!accuracy.ok()) {
    Fail(accuracy.status());
    return false;
  }
  core_->parts().worker_news.AddTest(trial_tests_->MessageOf(step_, *accuracy, error, end));
  core_->HeartbeatToLead();
  return true;
}

bool VirtualWorker::IsDealt() {
  if (!sampler_.has_value() && !trial_tests_.has_value()) return true;
  client::DealBook& deals = core_->parts().deals;
  if (!deals.Wait(step_, absl::ZeroDuration())) {
    if (std::exchange(asks_, true)) return false;
    core_->HeartbeatToLead();
    loop_->PostAt(time_.Now() + options_.heartbeat_interval, [this] {
      asks_ = false;
      Continue();
    });
    return false;
  }
  if (!sampler_.has_value()) return true;
  for (const Deal& deal : deals.DealsAfter(sampler_->deal_count())) {
    sampler_->Add(deal);
    deals_.push_back(deal);
  }
  const uint64_t epoch = sampler_->epoch(step_);
  const Step begin = sampler_->EpochBegin(epoch);
  if (begin <= step_) deals.BeginEpoch(epoch, begin);
  return true;
}

void VirtualWorker::TellBegin() {
  const auto residuals = core_->parts().encoder.residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  const bool has_residuals =
      std::ranges::any_of(*residuals, [](const auto& shard) { return client::HasValues(shard); });
  Tell(absl::StrCat("has joined at step ", step_.value, has_residuals ? " with residuals" : ""));
  observer_.Begin(options_.worker, core_->joined_run().incarnation, *residuals);
}

void VirtualWorker::TellState(bool with_replica) {
  const auto residuals = core_->parts().encoder.residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  const std::vector<client::ShardResidualsView> unknown;
  observer_.Check(options_.worker, core_->joined_run().incarnation,
                  unjudged_count_ > 0 ? unknown : *residuals,
                  core_->parts().report.counters().lost_gtopk_returns(),
                  with_replica ? &core_->parts().replica : nullptr);
}

bool VirtualWorker::SavesResiduals() const {
  return core_->restored().folder() != nullptr &&
         (saves_ || core_->parts().job_news.checkpoint_step() == step_);
}

bool VirtualWorker::Settle() {
  if (!IsOver() && !core_->parts().deals.retired() && !SavesResiduals()) return true;
  if (unjudged_count_ > 0) return false;
  const Step next = *core_->Settle();
  if (next == step_) return true;
  step_ = next;
  ContinueLater();
  return false;
}

void VirtualWorker::SaveResiduals() {
  // The residuals before a step do not contain values of pushes without verdicts. The checkpoint may
  // have been announced after the step has begun.
  if (!SavesResiduals() || unjudged_count_ > 0) return;
  saves_ = false;
  const client::WorkerFolder* const folder = core_->restored().folder();
  const auto residuals = core_->parts().encoder.residuals();
  if (!residuals.ok()) return Fail(residuals.status());
  if (absl::IsAborted(folder->CheckHeld())) return;  // a client logs that it has not saved
  absl::Status saved =
      client::WriteResiduals(folder->PathOf(step_), client::OwnerOf(options_), partition_,
                             {core_->joined_run().run, step_}, *residuals);
  if (saved.ok()) saved = folder->RemoveOld();
  if (!saved.ok()) return Fail(std::move(saved));
  observer_.Keep(options_.worker, core_->joined_run().incarnation, step_, step_, *residuals);
}

void VirtualWorker::RestoreNewest() {
  const client::WorkerFolder* const folder = core_->restored().folder();
  if (folder == nullptr) return;
  const auto steps = folder->Steps();
  if (!steps.ok() || steps->empty()) return;
  auto saved =
      client::ReadResiduals(folder->PathOf(steps->back()), client::OwnerOf(options_), partition_);
  if (!saved.ok()) return Fail(saved.status());
  const absl::Status restored = core_->parts().encoder.Restore(*std::move(saved));
  if (!restored.ok()) Fail(restored);
}

void VirtualWorker::LeaveWhenTrained() {
  stays_ = false;
  ContinueLater();
}

void VirtualWorker::Compute() {
  TellState(/*with_replica=*/true);
  SaveResiduals();
  // Frames under way share the memory of the gradient, also after the end of the process.
  const auto gradient = std::make_shared<std::vector<std::vector<float>>>();
  for (const TensorShape& tensor : task_.tensors) gradient->emplace_back(tensor.value_count());
  if (sampler_.has_value()) pushed_[step_] = examples_;
  const absl::StatusOr<uint32_t> count = task_.gradient(StepNow(), *gradient);
  if (!count.ok()) return Fail(count.status());
  if (*count > 0)
    observer_.AddProduced(options_.worker, core_->joined_run().incarnation, *gradient, *count);
  core_->BeginStep(step_, *count, 1);
  for (uint32_t i = gradient->size(); i-- > 0;) core_->Ready(i, (*gradient)[i], gradient);
}

void VirtualWorker::BeginStreaming(const VirtualLocalSteps::Plan& plan) {
  SaveResiduals();
  streaming_->Follow(step_, parameters_);
  used_.assign(used_.size(), false);  // local steps have parameters of their own
  if (sampler_.has_value()) pushed_[step_] = examples_;
  const std::vector<client::FragmentMove> moves =
      client::MovesOfStep(task_.streaming->spec, plan.local_steps, plan.whole);
  moves_.assign(moves.begin(), moves.end());
  local_steps_ = 0;
  core_->BeginStep(step_, plan.examples, 1);
  Stream();
}

void VirtualWorker::Stream() {
  const VirtualLocalSteps& local = *task_.streaming;
  while (!moves_.empty() && !training_) {
    const client::FragmentMove move = moves_.front();
    const std::vector<ShardId>& shards = fragments_[move.fragment];
    if (local_steps_ < move.local_steps) {
      training_ = true;
      VirtualStep step = StepNow();
      step.parameters = streaming_->parameters();
      loop_->PostAt(time_.Now() + local.time(step, local_steps_, move.local_steps),
                    [this, life = life_, step, end = move.local_steps] {
                      if (life != life_ || state_ != State::kTraining) return;
                      training_ = false;
                      local_steps_ = end;
                      if (absl::Status trained = task_.streaming->train(step); !trained.ok()) {
                        return Fail(std::move(trained));
                      }
                      Stream();
                    });
      return;
    }
    if (move.mixes) {
      const auto is_missing = [this](ShardId shard) { return bool{missing_[shard.value]}; };
      if (std::ranges::any_of(shards, is_missing)) return;
      streaming_->Mix(shards, parameters_, move.own);
    } else {
      streaming_->Take(shards);
      // The next parameters of the fragment are awaited before the core has encoded it.
      for (const ShardId shard : shards) missing_[shard.value] = true;
      const auto differences = streaming_->differences();
      core_->ReadyFragment(move.fragment, std::vector<std::span<const float>>(differences.begin(),
                                                                              differences.end()));
    }
    moves_.pop_front();
  }
  if (!moves_.empty() || training_) return;
  streaming_->Finish(step_ + 1);
  if (const auto next = std::exchange(next_, std::nullopt)) OnNextStep(*next);
}

void VirtualWorker::Leave() {
  state_ = State::kLeaving;
  core_->Leave({.finished = true}, options_.silence, [this](const absl::Status& left) {
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
  observer_.OnFailed(options_.worker, failure_);
  failed_();
}

void VirtualWorker::Tell(const std::string& text) const {
  observer_.Tell(absl::StrCat("w", options_.worker.value, "/", incarnation().value, " ", text));
}

}  // namespace thinwire::sim
