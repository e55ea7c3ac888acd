#include "server/edge/lead/deal_lead.h"

#include <glog/logging.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "server/durable/log_record.h"

namespace thinwire {

DealLead::DealLead(Dealer& dealer, const ModelSlot& model, Journal& journal, Clock& clock,
                   std::function<Fold()> fold, Post post)
    : dealer_(dealer),
      model_(model),
      journal_(journal),
      clock_(clock),
      fold_(std::move(fold)),
      post_(std::move(post)) {}

void DealLead::Update(const std::vector<WorkerId>& live, const std::vector<WorkerId>& returning) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  if (model == nullptr || model->hosts().empty()) return;
  StoreProgress(*model);
  if (!model->open()) return;
  const auto next = [&model](WorkerId worker) { return model->next(worker); };
  const auto deal = dealer_.Propose(live, returning, next, clock_.Now());
  if (!deal.has_value()) return;
  if (const auto more = deal_lines_.Next(clock_.Now())) {
    LOG(INFO) << "from step " << deal->step() << " on, the examples are dealt among "
              << deal->members_size() << " workers" << *more;
  }
  journal_.Append(DealRecord{*deal}, [this](LogSequence) { post_([this] { dealer_.Commit(); }); });
}

void DealLead::Replace(WorkerId worker) {
  const std::shared_ptr<const HostedModel> model = model_.Get();
  const Step next = model->next(worker);
  // By round, the other workers may have finished one step more.
  const uint64_t ahead_count = fold_() == Fold::kRound ? 1 : 0;
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

void DealLead::StoreProgress(const HostedModel& model) {
  // The progress of a server without shards is not known.
  if (!model.hosts().empty()) dealer_.Advance(model.largest_next(), clock_.Now());
}

}  // namespace thinwire
