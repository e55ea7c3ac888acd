#include "worker/trainer/divergence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace thinwire {
namespace {

constexpr uint64_t kFirstSteps = 10;
constexpr uint64_t kRecentSteps = 100;
// The factor for losses without a guessing loss. The loss of one small batch may be far below the
// mean.
constexpr double kLargestGrowth = 100;

}  // namespace

std::optional<double> GuessingLoss(std::span<const int32_t> labels) {
  if (labels.empty()) return std::nullopt;
  std::map<int32_t, uint64_t> counts;
  for (const int32_t label : labels) ++counts[label];
  double entropy = 0;
  for (const auto& [label, count] : counts) {
    const double frequency = static_cast<double>(count) / static_cast<double>(labels.size());
    entropy -= frequency * std::log(frequency);
  }
  return entropy;
}

void DivergenceWatch::AddStep(Step step, double loss, bool gradient_overflowed) {
  epoch_had_steps_ = true;
  epoch_had_good_gradients_ |= !gradient_overflowed;
  if (!std::isfinite(loss)) {
    if (lost_.empty()) lost_ = absl::StrCat("the loss of step ", step.value, " is not finite");
    return;
  }
  if (++step_count_ <= kFirstSteps) first_loss_ = std::min(first_loss_, loss);
  if (step_count_ == 1) {
    first_step_loss_ = loss;
    return;
  }
  recent_.push_back(loss);
  if (recent_.size() > kRecentSteps) recent_.pop_front();
}

std::string DivergenceWatch::ComparedWithGuessing(double recent, double guessing_loss) const {
  const bool grew = recent > 10 * std::max(first_step_loss_, guessing_loss);
  const bool did_not_fall = step_count_ >= kFirstSteps + kRecentSteps &&
                            recent >= std::max(0.9 * first_loss_, 0.99 * guessing_loss);
  if (!grew && !did_not_fall) return "";
  return absl::StrFormat(
      "the training loss %s (%.4g over the last %d steps; %.4g in the first step%s; %.4g by "
      "guessing)",
      grew ? "grew" : "did not fall", recent, recent_.size(), grew ? first_step_loss_ : first_loss_,
      grew ? "" : "s", guessing_loss);
}

void DivergenceWatch::FinishEpoch(uint64_t epoch) {
  of_epoch_.clear();
  if (epoch_had_steps_ && !epoch_had_good_gradients_) {
    of_epoch_ = absl::StrCat("every step of epoch ", epoch,
                             " had a gradient that is not finite, which was "
                             "pushed with weight 0");
  } else if (!recent_.empty()) {
    const double recent =
        std::accumulate(recent_.begin(), recent_.end(), 0.0) / static_cast<double>(recent_.size());
    if (guessing_loss_.has_value()) {
      of_epoch_ = ComparedWithGuessing(recent, *guessing_loss_);
    } else if (first_step_loss_ > 0 && recent > kLargestGrowth * first_step_loss_) {
      of_epoch_ = absl::StrFormat(
          "the training loss grew (%.4g over the last %d steps; %.4g in the first step)", recent,
          recent_.size(), first_step_loss_);
    }
  }
  epoch_had_steps_ = false;
  epoch_had_good_gradients_ = false;
}

}  // namespace thinwire
