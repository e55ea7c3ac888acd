#include "client/encode/streaming_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace thinwire::client {
namespace {

// Returns one span of VALUES per tensor.
std::vector<std::span<float>> ByTensor(const Partition& partition, std::span<float> values) {
  std::vector<std::span<float>> tensors;
  for (const TensorShape& tensor : partition.tensors()) {
    tensors.push_back(values.first(tensor.value_count()));
    values = values.subspan(tensor.value_count());
  }
  return tensors;
}

}  // namespace

std::vector<FragmentMove> MovesOfStep(const LocalStepsSpec& spec, uint32_t local_steps,
                                      bool whole) {
  std::vector<FragmentMove> moves;
  const auto push = [&](uint32_t fragment, uint32_t after) {
    moves.push_back({.local_steps = after, .fragment = fragment});
  };
  const auto mix = [&](uint32_t fragment, uint32_t after, float own) {
    moves.push_back({.local_steps = after, .fragment = fragment, .mixes = true, .own = own});
  };
  if (whole) {
    for (uint32_t f = 0; f < spec.fragments; ++f) push(f, local_steps);
    for (uint32_t f = 0; f < spec.fragments; ++f) mix(f, local_steps, 0);
    return moves;
  }
  uint32_t mixed_at = 0;
  for (uint32_t f = 0; f < spec.fragments; ++f) {
    const auto mixes_at = static_cast<uint32_t>((f + uint64_t{1}) * local_steps / spec.fragments);
    // A step with fewer local steps, at the end of a deal, has less time for an exchange.
    const uint32_t overlap = std::min(spec.overlap, mixes_at - mixed_at);
    push(f, mixes_at - overlap);
    mix(f, mixes_at, overlap > 0 ? static_cast<float>(spec.mixing) : 0);
    mixed_at = mixes_at;
  }
  return moves;
}

StreamingSteps::StreamingSteps(const Partition& partition)
    : partition_(partition), differences_(partition.value_count()) {
  state_.x.resize(partition.value_count());
  state_.base.resize(partition.value_count());
  Split();
}

void StreamingSteps::Split() {
  x_ = ByTensor(partition_, state_.x);
  base_ = ByTensor(partition_, state_.base);
  difference_ = ByTensor(partition_, differences_);
}

void StreamingSteps::Follow(Step step, Tensors replica) {
  if (state_.step == step) return;
  const bool has_values = state_.step.has_value();
  for (size_t t = 0; t < replica.size(); ++t) {
    for (size_t i = 0; i < replica[t].size(); ++i) {
      const float moved = replica[t][i] + (x_[t][i] - base_[t][i]);
      x_[t][i] = has_values && std::isfinite(moved) ? moved : replica[t][i];
    }
    std::copy(replica[t].begin(), replica[t].end(), base_[t].begin());
  }
  Finish(step);
}

void StreamingSteps::Take(std::span<const ShardId> shards) {
  for (const ShardId shard : shards) {
    for (const Segment& s : partition_.segments(shard)) {
      const std::span<const float> x = x_[s.tensor].subspan(s.offset, s.count);
      const std::span<float> base = base_[s.tensor].subspan(s.offset, s.count);
      const std::span<float> difference = difference_[s.tensor].subspan(s.offset, s.count);
      for (size_t i = 0; i < s.count; ++i) difference[i] = base[i] - x[i];
      std::copy(x.begin(), x.end(), base.begin());
    }
  }
}

void StreamingSteps::Mix(std::span<const ShardId> shards, Tensors replica, float own) {
  const auto mix = [own](std::span<const float> r, std::span<float> values) {
    for (size_t i = 0; i < r.size(); ++i) {
      const float mixed = own * values[i] + (1 - own) * r[i];
      values[i] = std::isfinite(mixed) ? mixed : r[i];
    }
  };
  for (const ShardId shard : shards) {
    for (const Segment& s : partition_.segments(shard)) {
      const std::span<const float> r = replica[s.tensor].subspan(s.offset, s.count);
      mix(r, x_[s.tensor].subspan(s.offset, s.count));
      mix(r, base_[s.tensor].subspan(s.offset, s.count));
    }
  }
}

double StreamingSteps::UnpushedNorm() const {
  double norm = 0;
  for (size_t i = 0; state_.step.has_value() && i < state_.x.size(); ++i) {
    norm += std::abs(double{state_.base[i]} - state_.x[i]);
  }
  return norm;
}

void StreamingSteps::Restore(State state) {
  state_ = std::move(state);
  Split();
}

}  // namespace thinwire::client
