#include "server/core/update/gradient_noise.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/codec/payload.h"
#include "kernels/reductions.h"

namespace thinwire {
namespace {

// Few, because the squared gradient falls fast at the beginning of a run: a longer mean would show
// the noise scale of steps long ago.
constexpr uint64_t kMeanRounds = 8;

double SquaredNorm(const CheckedPayload& payload) {
  double sum = 0;
  const auto add = [&sum](auto /*position*/, std::span<const float> values) {
    sum += kernels::SumOfSquares(values);
  };
  if (PayloadIsSparse(payload)) {
    ForEachPayloadEntry(payload, add);
  } else {
    DecodePayloadInBlocks(payload, 1, add);
  }
  return sum;
}

}  // namespace

std::optional<double> NoiseEstimate::scale() const {
  if (variance <= 0 || squared_gradient <= 0) return std::nullopt;
  return variance / squared_gradient;
}

NoiseEstimate SumOfNoise(std::span<const NoiseEstimate> shards) {
  NoiseEstimate sum = shards.front();
  for (const NoiseEstimate& shard : shards.subspan(1)) {
    sum.variance += shard.variance;
    sum.squared_gradient += shard.squared_gradient;
    sum.rounds = std::min(sum.rounds, shard.rounds);
  }
  return sum;
}

void GradientNoise::Add(const Gradient& gradient) {
  ++open_.pushes;
  if (gradient.late_examples > 0) return;
  ++open_.single_batches;
  open_.squares += SquaredNorm(gradient.payload);
  open_.reciprocal_counts += 1.0 / gradient.examples;
}

void GradientNoise::Close(const Accumulator& round) {
  const Round closed = std::exchange(open_, {});
  if (closed.pushes < 2 || closed.single_batches == 0) return;
  const auto pushes = static_cast<double>(closed.single_batches);
  const double small = closed.squares / pushes;
  const double large = round.SquaredNormOfMean();
  const double per_example = 1.0 / static_cast<double>(round.weight());
  const double variance = (small - large) / (closed.reciprocal_counts / pushes - per_example);
  const double squared_gradient = large - variance * per_example;
  ++estimate_.rounds;
  const double weight = 1.0 / static_cast<double>(std::min(estimate_.rounds, kMeanRounds));
  estimate_.variance += weight * (variance - estimate_.variance);
  estimate_.squared_gradient += weight * (squared_gradient - estimate_.squared_gradient);
}

}  // namespace thinwire
