#include "worker/trainer/numeric_watch.h"

#include <glog/logging.h>

#include <cmath>

#include "absl/strings/str_cat.h"

namespace thinwire {

NumericWatch::NumericWatch(const TrainerOptions& options, const TrainerParts& parts)
    : options_(options), parts_(parts), divergence_(GuessingLoss(parts.train.labels)) {
  if (options.loss_scaling) scale_.emplace(*options.loss_scaling);
}

WorkerCounters NumericWatch::Counters() const {
  WorkerCounters counters = parts_.client.counters();
  if (scale_) counters.set_overflowed_steps(scale_->overflow_count());
  counters.set_nonfinite_gradients(counters.nonfinite_gradients() + skipped_local_steps_);
  return counters;
}

void NumericWatch::AddPass(const Batch& batch, const BatchResult& result) {
  if (std::isfinite(result.loss_sum) || loss_is_lost()) return;
  batch_was_finite_ = AllFinite(batch.x) && AllFinite(batch.targets);
}

void NumericWatch::AddLocalStep(Step step, bool finite) {
  if (!finite) ++skipped_local_steps_;
  UpdateScale(step, finite ? "" : "the gradient of a local step");
}

void NumericWatch::AddStep(Step step, double loss) {
  // EndStep() has encoded every shard of the step, so the client has counted all shards of the step
  // whose gradient is not finite.
  const uint64_t count = Counters().nonfinite_gradients();
  const uint64_t added = count - nonfinite_gradients_;
  nonfinite_gradients_ = count;
  divergence_.AddStep(step, loss, added > 0 && loss_scale() <= 1);
  if (options_.local.enabled()) return;  // every local step has updated the loss scale
  UpdateScale(step, added > 0 ? absl::StrCat("the gradient of ", added, " shards") : "");
}

void NumericWatch::ForgetSteps() {
  divergence_ = DivergenceWatch(GuessingLoss(parts_.train.labels));
}

void NumericWatch::UpdateScale(Step step, const std::string& what) {
  if (!scale_) return;
  if (what.empty()) {
    scale_->Good();
    return;
  }
  const float before = scale_->value();
  scale_->Overflowed();
  if (const auto more = overflow_lines_.Next(parts_.clock.Now())) {
    LOG(INFO) << "step " << step << ": " << what << " is not finite; loss scale " << before
              << " -> " << scale_->value() << *more;
  }
}

std::string NumericWatch::DivergenceText() const {
  const std::string& symptom = divergence_.symptom();
  if (symptom.empty()) return "";
  if (!batch_was_finite_) {
    return absl::StrCat(symptom, ": the data has a value that is not finite in this step's batch");
  }
  if (options_.divergence_advice.empty()) return symptom;
  return absl::StrCat(symptom, "; what usually helps: ", options_.divergence_advice);
}

}  // namespace thinwire
