#include "server/protocols/deals/deal_lead.h"

#include <glog/logging.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "config/job.h"
#include "proto/deal_check.h"
#include "server/core/shard.h"

namespace thinwire {

DealLead::DealLead(JobState& state, const JoinQueue& joins, const JobCheckpoints& checkpoints,
                   DecisionStore& store, const ModelSlot& model, Clock& clock, Executor& control,
                   std::unique_ptr<GrowthLead> growth)
    : state_(state),
      dealer_(state.dealer),
      joins_(joins),
      checkpoints_(checkpoints),
      store_(store),
      model_(model),
      clock_(clock),
      control_(control),
      growth_(std::move(growth)) {}

absl::Status DealLead::Begin() {
  if (state_.recovered) dealer_.Resume(clock_.Now(), /*went_back=*/checkpoints_.aligned());
  return absl::OkStatus();
}

void DealLead::AddTask(const JoinRequest& request) {
  const bool by_speed = request.config().task().auto_local_steps() && !speed_.has_value();
  const bool grows = growth_ != nullptr && !growth_->begun();
  if (!by_speed && !grows) return;
  const absl::StatusOr<JobSpec> job = CheckJob(request.config());
  if (!request.config().has_task() || !job.ok()) {
    LOG_EVERY_T(WARNING, 60) << "the batch does not grow while no worker has stated its task";
    return;
  }
  if (by_speed) speed_.emplace(job->task, dealer_);
  if (grows) growth_->Begin(job->task, request.planned_examples());
}

void DealLead::MeasureNoise(const std::shared_ptr<const HostedModel>& model) {
  if (growth_ == nullptr || !growth_->begun() || measures_) return;
  measures_ = true;
  const auto update = [this, model](const std::vector<NoiseEstimate>& shards) {
    const NoiseEstimate noise = SumOfNoise(shards);
    measures_ = false;
    if (!growth_->Update(noise, model->largest_next(), state_.rule.rule())) return;
    const uint64_t batch = growth_->batch();
    LOG(INFO) << "the batch grows from " << batch << " to " << 2 * batch
              << " examples: gradient variance " << noise.variance << ", squared gradient "
              << noise.squared_gradient << " after " << noise.rounds << " measured rounds";
  };
  model->ForAllShards<NoiseEstimate>(
      [](const ShardHost&, const Shard& shard) { return shard.noise(); },
      [&control = control_, update](const std::vector<NoiseEstimate>& shards) {
        control.Post([update, shards] { update(shards); });
      });
}

void DealLead::MeasureSpeed(const std::shared_ptr<const HostedModel>& model) {
  if (!speed_.has_value()) return;
  ShardHost& first = *model->hosts().front();
  if (!speed_->Due(first.frontier())) return;
  first.Post([this, model, &first](Shard& shard) {
    control_.Post([this, times = first.MeasureSteps(), frontier = shard.frontier()] {
      if (!speed_->Due(frontier)) return;
      speed_->Update(times, state_.membership.Live(), frontier);
    });
  });
}

void DealLead::Update() {
  // Workers that stop together leave one after the other, and come back together.
  if (state_.stopping || state_.membership.StopStep().has_value()) return;
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || model->hosts().empty()) return;
  StoreProgress(*model);
  if (!model->open()) return;
  MeasureNoise(model);
  MeasureSpeed(model);
  const auto next = [&model](WorkerId worker) { return model->next(worker); };
  const auto deal =
      dealer_.Propose(state_.membership.Live(), joins_.Returning(), next, clock_.Now());
  if (!deal.has_value()) return;
  if (const auto more = deal_lines_.Next(clock_.Now())) {
    LOG(INFO) << DealText(*deal) << *more;
  }
  store_.RecordDeal(*deal, [this](const absl::Status& recorded) {
    control_.Post([this, recorded] {
      if (recorded.ok()) return dealer_.Commit();
      LOG_EVERY_T(WARNING, 10) << "a deal is announced later: " << recorded.message();
      dealer_.Withdraw();
    });
  });
}

void DealLead::Heard(const HeartbeatRequest& request) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || state_.stopping) return;
  // The servers and the workers may go back to the newest common checkpoint, but not further.
  Step limit{kLastDealStep};
  if (checkpoints_.aligned()) limit = checkpoints_.kept().value_or(Step{});
  dealer_.Drop(request.data_epoch(), Step{request.data_epoch_begin()}, limit,
               state_.membership.Live(), [&model](WorkerId worker) { return model->next(worker); });
}

void DealLead::FillIn(WorkerId /*worker*/, JoinReply& reply) {
  StoreProgress(*model_.Get());
  dealer_.FillIn(reply);
}

void DealLead::FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr) return;
  dealer_.Heard(WorkerId{request.worker()}, request.dealt_until());
  StoreProgress(*model);
  dealer_.FillIn(request.deal_count(), reply);
}

void DealLead::FillIn(StatusReply& reply) const {
  if (growth_ != nullptr) growth_->FillIn(reply);
}

void DealLead::StoreProgress(const HostedModel& model) {
  // The progress of a server without shards is not known.
  if (!model.hosts().empty()) dealer_.Advance(model.largest_next(), clock_.Now());
}

}  // namespace thinwire
