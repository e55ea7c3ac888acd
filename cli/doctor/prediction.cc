#include "cli/doctor/prediction.h"

#include <algorithm>

namespace thinwire {
namespace {

constexpr double kTolerance = 0.05;

}  // namespace

StepPrediction Predict(const CodecCandidate& candidate, const StepConditions& conditions) {
  const client::CodecCost& push = candidate.push_cost;
  const client::CodecCost& pull = candidate.pull_cost;
  const auto values = static_cast<double>(conditions.value_count);
  const double servers = conditions.server_count;
  const double workers_per_server = conditions.worker_count / servers;
  StepPrediction prediction;
  prediction.push_bytes = values * push.bytes;
  prediction.pull_bytes = values * pull.bytes;
  prediction.encode = absl::Seconds(values * (push.encode_seconds + pull.encode_seconds / servers));
  const double up_seconds = prediction.push_bytes / conditions.up;
  const double down_seconds = prediction.pull_bytes / conditions.down;
  prediction.wire = conditions.round_trip +
                    absl::Seconds((std::max(up_seconds, down_seconds) +
                                   std::min(up_seconds, down_seconds) / conditions.shard_count) *
                                  std::max(1.0, workers_per_server));
  prediction.decode =
      absl::Seconds(values * (pull.decode_seconds + push.decode_seconds * workers_per_server));
  if (conditions.disk.has_value()) {
    prediction.log =
        conditions.disk->flush + absl::Seconds(prediction.push_bytes * workers_per_server /
                                               conditions.disk->bytes_per_second);
  }
  prediction.step =
      conditions.compute + prediction.encode + prediction.wire + prediction.decode + prediction.log;
  return prediction;
}

size_t Recommend(std::span<const CodecCandidate> candidates,
                 std::span<const StepPrediction> predictions) {
  absl::Duration fastest = absl::InfiniteDuration();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].error < 1) fastest = std::min(fastest, predictions[i].step);
  }
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (predictions[i].step > fastest * (1 + kTolerance)) continue;
    if (!best.has_value() || candidates[i].error < candidates[*best].error) best = i;
  }
  return best.value_or(0);
}

}  // namespace thinwire
