#include "server/protocols/deals/deal_lead.h"

#include <glog/logging.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "config/job.h"
#include "server/core/shard.h"

namespace thinwire {

DealLead::DealLead(Dealer& dealer, const ModelSlot& model, Clock& clock, std::function<Rule()> rule,
                   Executor& control, Record record, std::unique_ptr<GrowthLead> growth)
    : dealer_(dealer),
      model_(model),
      clock_(clock),
      rule_(std::move(rule)),
      control_(control),
      record_(std::move(record)),
      growth_(std::move(growth)) {}

void DealLead::AddTask(const JoinRequest& request) {
  if (growth_ == nullptr || growth_->begun()) return;
  const absl::StatusOr<JobSpec> job = CheckJob(request.config());
  if (request.config().has_task() && job.ok()) {
    return growth_->Begin(job->task, request.planned_examples());
  }
  LOG_EVERY_T(WARNING, 60) << "the batch does not grow while no worker has stated its task";
}

void DealLead::MeasureNoise(const std::shared_ptr<const HostedModel>& model) {
  if (growth_ == nullptr || !growth_->begun() || measures_) return;
  measures_ = true;
  const auto update = [this, model](const std::vector<NoiseEstimate>& shards) {
    const NoiseEstimate noise = SumOfNoise(shards);
    measures_ = false;
    if (!growth_->Update(noise, model->largest_next(), rule_())) return;
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

void DealLead::Update(const std::vector<WorkerId>& live, const std::vector<WorkerId>& returning) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || model->hosts().empty()) return;
  StoreProgress(*model);
  if (!model->open()) return;
  MeasureNoise(model);
  const auto next = [&model](WorkerId worker) { return model->next(worker); };
  const auto deal = dealer_.Propose(live, returning, next, clock_.Now());
  if (!deal.has_value()) return;
  if (const auto more = deal_lines_.Next(clock_.Now())) {
    LOG(INFO) << "from step " << deal->step() << " on, the examples are dealt among "
              << deal->members_size() << " workers"
              << (deal->accumulate() > 0
                      ? absl::StrCat(", which accumulate ", deal->accumulate(), " batches")
                      : "")
              << *more;
  }
  record_(*deal, [this](const absl::Status& recorded) {
    control_.Post([this, recorded] {
      if (recorded.ok()) return dealer_.Commit();
      LOG_EVERY_T(WARNING, 10) << "a deal is announced later: " << recorded.message();
      dealer_.Withdraw();
    });
  });
}

void DealLead::Replace(WorkerId worker) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const Step next = model->next(worker);
  // By round, the other workers may have finished one step more.
  const uint64_t ahead_count = rule_().fold == Fold::kRound ? 1 : 0;
  if (model->largest_next() > next + ahead_count) dealer_.Replace(worker, next);
}

absl::StatusOr<Step> DealLead::StepAhead() {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model->hosts().empty()) {
    return absl::FailedPreconditionError(
        "server 0: cannot announce a step (expected at least one shard on server 0, got none)");
  }
  StoreProgress(*model);
  return dealer_.StepAhead();
}

void DealLead::FillIn(JoinReply& reply) {
  StoreProgress(*model_.Get());
  dealer_.FillIn(reply);
}

void DealLead::FillIn(const HeartbeatRequest& request, HeartbeatReply& reply) {
  dealer_.Heard(WorkerId{request.worker()}, request.dealt_until());
  StoreProgress(*model_.Get());
  dealer_.FillIn(request.deal_count(), reply);
}

void DealLead::Drop(const HeartbeatRequest& request, Step limit,
                    const std::vector<WorkerId>& live) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  dealer_.Drop(request.data_epoch(), Step{request.data_epoch_begin()}, limit, live,
               [&model](WorkerId worker) { return model->next(worker); });
}

void DealLead::FillIn(StatusReply& reply) const {
  if (growth_ != nullptr) growth_->FillIn(reply);
}

void DealLead::StoreProgress(const HostedModel& model) {
  // The progress of a server without shards is not known.
  if (!model.hosts().empty()) dealer_.Advance(model.largest_next(), clock_.Now());
}

}  // namespace thinwire
